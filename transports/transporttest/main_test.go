package transporttest_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(plantVariable) != "" {
		os.Exit(m.Run()) // some plants leak
	}
	goleak.VerifyTestMain(m)
}
