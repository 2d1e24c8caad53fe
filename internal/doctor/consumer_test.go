package doctor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/doctor"
)

func TestConsumers(t *testing.T) {
	t.Parallel()

	noted := []dedup.ConsumerSettings{
		{Consumer: "billing"},
		{Consumer: "shipping", Settings: dedup.Settings{Retention: 14 * day}, NotedAt: time.Now()},
	}
	tests := []struct {
		name      string
		only      string
		retention time.Duration
		want      []doctor.Consumer
	}{
		{name: "All", want: []doctor.Consumer{
			{Name: "billing"},
			{Name: "shipping", Noted: true, Settings: dedup.Settings{Retention: 14 * day}, Retention: 14 * day},
		}},
		{name: "One", only: "billing", want: []doctor.Consumer{{Name: "billing"}}},
		{name: "NotStartedYet", only: "new", retention: day, want: []doctor.Consumer{{Name: "new", Retention: day}}},
		{name: "Supposed", retention: 30 * day, want: []doctor.Consumer{
			{Name: "billing", Retention: 30 * day},
			{Name: "shipping", Noted: true, Settings: dedup.Settings{Retention: 14 * day}, Retention: 30 * day},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.want, doctor.Consumers(noted, tt.only, tt.retention))
		})
	}
}

// What is not known is never passed over in silence.
func TestSettings(t *testing.T) {
	t.Parallel()

	require.Empty(t, doctor.Settings([]doctor.Consumer{shipping()}))

	findings := doctor.Settings([]doctor.Consumer{shipping(), {Name: "billing"}})
	require.Len(t, findings, 1)
	require.Equal(t, doctor.NotChecked, findings[0].Level)
	require.Equal(t, "billing", findings[0].Consumer)
	require.Contains(t, findings[0].Found, "has not started with this version")
	require.False(t, findings[0].Failed, "nobody has promised that")

	findings = doctor.Settings(nil)
	require.Len(t, findings, 1)
	require.Equal(t, "no consumer is registered", findings[0].Found)
}
