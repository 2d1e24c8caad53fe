package dedup_test

import (
	"os"
	"testing"

	"github.com/semel-go/semel/internal/services"
)

func TestMain(m *testing.M) {
	services.SkipExamples()
	os.Exit(m.Run())
}
