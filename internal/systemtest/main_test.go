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
	goleak.VerifyTestMain(m)
}
