package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/doctor"
)

// What the broker drops nobody ever sees.
func TestQueues_Drops(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		queue oneQueue
		want  []doctor.Level
		found []string
	}{
		{name: "Classic", queue: oneQueue{Type: "classic", TTL: -1, DeliveryLimit: -1}, want: []doctor.Level{doctor.OK}, found: []string{"it drops no message"}},
		{
			name: "LimitAlone", queue: oneQueue{Type: "quorum", TTL: -1, DeliveryLimit: 20, ByDefault: true}, want: []doctor.Level{doctor.Problem},
			found: []string{"delivered again 20 times at most (RabbitMQ's default), then it is dropped: there is no dead letter exchange"},
		},
		{name: "LimitWithDeadLetters", queue: oneQueue{Type: "quorum", TTL: -1, DeliveryLimit: 20, DeadLetters: true}, want: []doctor.Level{doctor.OK}, found: []string{""}},
		{name: "LowestLimit", queue: oneQueue{Type: "quorum", TTL: -1, DeliveryLimit: 4, DeadLetters: true}, want: []doctor.Level{doctor.OK}, found: []string{""}},
		{
			name: "LowLimit", queue: oneQueue{Type: "quorum", TTL: -1, DeliveryLimit: 3, DeadLetters: true}, want: []doctor.Level{doctor.Warning},
			found: []string{"a message is delivered again 3 times at most"},
		},
		{
			name: "LowLimitAlone", queue: oneQueue{Type: "quorum", TTL: -1, DeliveryLimit: 0}, want: []doctor.Level{doctor.Problem, doctor.Warning},
			found: []string{"then it is dropped", "again 0 times at most"},
		},
		{
			name: "TTLAlone", queue: oneQueue{Type: "classic", TTL: time.Hour, DeliveryLimit: -1}, want: []doctor.Level{doctor.Warning},
			found: []string{"not handled within 1h is dropped: there is no dead letter exchange"},
		},
		{name: "TTLWithDeadLetters", queue: oneQueue{Type: "classic", TTL: time.Hour, DeliveryLimit: -1, DeadLetters: true}, want: []doctor.Level{doctor.OK}, found: []string{""}},
		{name: "Stream", queue: oneQueue{Type: "stream", TTL: -1, DeliveryLimit: -1}, want: []doctor.Level{doctor.NotChecked}, found: []string{"it is a stream"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tt.queue.Name = "payments"
			findings := doctor.Queues(t.Context(), tt.queue, "/", []string{"payments"}, nil)

			require.Equal(t, tt.want, levels(findings))
			for i, f := range findings {
				require.Equal(t, "payments", f.Object)
				require.Contains(t, f.Found, tt.found[i])
				require.Equal(t, f.Level == doctor.OK, f.Why == "")
				require.Equal(t, f.Level == doctor.OK, f.Do == "")
			}
		})
	}
}

// noQueue is a broker without the queue, or that does not answer.
type noQueue struct{ err error }

func (q noQueue) Queue(context.Context, string, string) (doctor.Queue, error) {
	return doctor.Queue{}, q.err
}

func TestQueues_Unreadable(t *testing.T) {
	t.Parallel()

	findings := doctor.Queues(t.Context(), noQueue{fmt.Errorf("ask: %w", doctor.ErrNoQueue)}, "shop", []string{"a", "b"}, remembering(14*day))
	require.Equal(t, []doctor.Level{doctor.Problem, doctor.Problem}, levels(findings))
	require.Equal(t, "the queue does not exist in vhost shop", findings[0].Found)

	findings = doctor.Queues(t.Context(), noQueue{errors.New("refused")}, "/", []string{"a"}, remembering(14*day))
	require.Equal(t, []doctor.Level{doctor.NotChecked}, levels(findings))
	require.True(t, findings[0].Failed)
}
