package handler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// The numbers stand in users' databases.
func TestOutcome_NumbersAndNames(t *testing.T) {
	t.Parallel()

	tests := []struct {
		outcome handler.Outcome
		number  int16
		name    string
	}{
		{outcome: handler.Processed, number: 1, name: "processed"},
		{outcome: handler.Superseded, number: 2, name: "superseded"},
		{outcome: handler.Skipped, number: 3, name: "skipped"},
		{outcome: handler.Stored, number: 4, name: "stored"},
		{outcome: handler.Dead, number: 5, name: "dead"},
		{outcome: handler.Duplicate, number: 6, name: "duplicate"},
		{outcome: handler.Mismatch, number: 7, name: "mismatch"},
		{outcome: 0, number: 0, name: "Outcome(0)"},
		{outcome: 8, number: 8, name: "Outcome(8)"},
		{outcome: -1, number: -1, name: "Outcome(-1)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.number, int16(tt.outcome))
			require.Equal(t, tt.name, tt.outcome.String())
		})
	}
}
