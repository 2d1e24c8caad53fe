package doctor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/doctor"
)

func TestRetries(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name           string
		retention, age time.Duration
		want           []doctor.Level
	}{
		{name: "Enough", retention: 14 * day, age: 14*day - 1, want: []doctor.Level{doctor.OK}},
		{name: "Short", retention: 14 * day, age: 14 * day, want: []doctor.Level{doctor.Problem}},
		{name: "RetriedForEver", retention: 14 * day, age: -1, want: []doctor.Level{doctor.Problem}},
		{name: "RememberedForEver", retention: -1, age: -1, want: []doctor.Level{doctor.OK}},
		{name: "UnknownAge", retention: 14 * day, want: []doctor.Level{}},
		{name: "UnknownRetention", age: day, want: []doctor.Level{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			findings := doctor.Retries([]doctor.Consumer{{Name: "shipping", Retention: tt.retention, Settings: dedup.Settings{RetryMaxAge: tt.age}}})

			require.Equal(t, tt.want, levels(findings))
		})
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name           string
		retention, age time.Duration
		want           []doctor.Level
	}{
		{name: "Shorter", retention: 14 * day, age: 14 * day, want: []doctor.Level{doctor.OK}},
		{name: "Longer", retention: 14 * day, age: 90 * day, want: []doctor.Level{doctor.Warning}},
		{name: "KeptForEver", retention: 14 * day, age: -1, want: []doctor.Level{doctor.OK}},
		{name: "RememberedForEver", retention: -1, age: 90 * day, want: []doctor.Level{doctor.OK}},
		{name: "Unknown", retention: 14 * day, want: []doctor.Level{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			findings := doctor.DeadLetters([]doctor.Consumer{{Name: "shipping", Retention: tt.retention, Settings: dedup.Settings{DeadLetterRetention: tt.age}}})

			require.Equal(t, tt.want, levels(findings))
		})
	}
}
