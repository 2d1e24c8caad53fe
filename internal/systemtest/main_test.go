package systemtest_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if order := os.Getenv(childEnv); order != "" {
		os.Exit(childMain(order))
	}
	if os.Getenv(providerEnv) != "" {
		os.Exit(providerMain())
	}
	goleak.VerifyTestMain(m)
}
