package doctor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/doctor"
)

// oneQueue is a broker whose queues all are this one.
type oneQueue doctor.Queue

func (q oneQueue) Queue(context.Context, string, string) (doctor.Queue, error) {
	return doctor.Queue(q), nil
}

// The formula of docs/retention.md, to the second: what is remembered must outlive
// what lies in the broker by a day.
func TestQueues_Retention(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name      string
		ttl       time.Duration
		retention time.Duration
		want      doctor.Level
		found, do string
	}{
		{name: "Enough", ttl: 13 * day, retention: 14 * day, want: doctor.OK, found: "the queue keeps messages for 13d, the consumer remembers for 14d"},
		{
			name: "Short", ttl: 13*day + time.Second, retention: 14 * day, want: doctor.Problem,
			found: "the queue keeps messages for 13d1s, the consumer remembers for 14d",
			do:    "raise Config.Retention to 14d1s or more, or set message-ttl of the queue by a policy, with a dead letter exchange, to at most 13d",
		},
		{name: "MuchTooShort", ttl: 36 * time.Hour, retention: day, want: doctor.Problem, found: "for 36h, the consumer remembers for 24h", do: "raise Config.Retention to 2d12h or more"},
		{
			name: "NoTTL", ttl: -1, retention: 14 * day, want: doctor.Warning,
			found: "the queue keeps messages for ever, the consumer remembers for 14d",
			do:    "set Config.Retention to inbox.KeepForever, or set message-ttl of the queue by a policy, with a dead letter exchange, to at most 13d",
		},
		{name: "BothForEver", ttl: -1, retention: -1, want: doctor.OK, found: "for ever, the consumer remembers for ever"},
		{name: "RemembersForEver", ttl: 300 * day, retention: -1, want: doctor.OK, found: "for 300d, the consumer remembers for ever"},
		{name: "Unknown", ttl: time.Hour, retention: 0, want: doctor.NotChecked, found: "for 1h; how long the consumer remembers is not known", do: "give -retention"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			queue := oneQueue{Name: "payments", Type: "classic", TTL: tt.ttl, DeliveryLimit: -1, DeadLetters: true}
			findings := doctor.Queues(t.Context(), queue, "/", []string{"payments"}, remembering(tt.retention))

			require.Len(t, findings, 2)
			require.Equal(t, doctor.OK, findings[0].Level, "it drops nothing")
			f := findings[1]
			require.Equal(t, tt.want, f.Level)
			require.Equal(t, "payments", f.Object)
			require.Equal(t, "shipping", f.Consumer)
			require.Contains(t, f.Found, tt.found)
			if tt.do == "" {
				require.Empty(t, f.Do+f.Why)
				return
			}
			require.Contains(t, f.Do, tt.do)
			require.NotEmpty(t, f.Why)
		})
	}
}
