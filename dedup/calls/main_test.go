package calls_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/semel-go/semel/internal/services"
)

func TestMain(m *testing.M) {
	services.SkipExamples()
	goleak.VerifyTestMain(m)
}
