package outbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// What a broker asks for is neither an attempt each millisecond nor the end of an
// event: a pause of none is none less than ours, and one beyond the maximum age leaves
// time for other attempts.
func TestRelay_AskedToComeBack(t *testing.T) {
	t.Parallel()

	for name, asked := range map[string]time.Duration{"AtOnce": 0, "InAYear": 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			p := &recorder{answer: func(context.Context, *handler.Message) error { return handler.RetryAfter(asked, errNo) }}
			b.write(t, order("1", 1))
			cfg := quick()
			cfg.RetryDelay, cfg.RetryMaxDelay, cfg.MaxAge = time.Hour, time.Hour, 24*time.Hour
			b.relay(t, p, cfg)
			require.Eventually(t, func() bool { return query[int](t, b, `SELECT attempts::int FROM semel.outbox`) == 1 }, deadline, tick)
			require.True(t, query[bool](t, b, `SELECT quarantined_at IS NULL AND next_attempt_at < clock_timestamp() + interval '6 hours 1 minute' FROM semel.outbox`))
			least := 100 * time.Millisecond // of a pause that is drawn between none and an hour
			if asked > 0 {
				least = 5 * time.Hour
			}
			require.True(t, query[bool](t, b, `SELECT next_attempt_at > clock_timestamp() + $1::interval FROM semel.outbox`, least))
		})
	}
}
