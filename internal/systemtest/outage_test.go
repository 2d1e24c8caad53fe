package systemtest_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// workers is how many handlers run at once: the pool of a bundle has ten
// connections, and two stay free.
const workers = 8

// outageVariable is how long the database is away: a minute in a long run.
const outageVariable = "SEMEL_TEST_OUTAGE"

func outageTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(outageVariable)
	if text == "" {
		return 4 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, outageVariable)
	require.GreaterOrEqual(t, d, 2*time.Second, "%s: shorter than a few commit intervals it proves nothing", outageVariable)
	return d
}

// Case K1: PostgreSQL was away for a minute under load. Consumers acknowledged
// what they could not store, or spent their attempts on it and filled the dead
// letters with healthy messages (wolverine#1708; dbos-transact-py#733).
func TestOutage_DatabaseAwayUnderLoad(t *testing.T) {
	eachBroker(t, func(t *testing.T, kind string) {
		b := setup(t, kind, place{partitions: 3})
		pool, proxy := b.through(t)
		source := b.broker.recipe().source(b.log.logger())
		r := b.run(t, b.inbox(t, pool, effect, inbox.Config{}), source)
		load := startLoad(t, b.broker, func(from int) []*handler.Message { return messages(from, 20) })
		b.awaitEffects(t, 100)

		proxy.Pause() // or the first to be cut could still meet one that is not
		proxy.Refuse(true)
		proxy.Cut()
		proxy.Resume()
		began := time.Now()
		await(t, "the consumer to pause", func() bool { s := r.in.Stats(); return s.Paused && s.Running == 0 })
		settled := r.passed().settled

		half := began.Add(outageTime(t) / 2)
		await(t, "half of the outage", func() bool {
			requireNothingHappens(t, b, r, settled)
			return time.Now().After(half)
		})
		sent := load.stop(t)
		acked := len(sent) - b.broker.left(t)
		require.LessOrEqual(t, acked, settled, "acknowledged before it took effect")
		end := began.Add(outageTime(t))
		await(t, "the end of the outage", func() bool {
			requireNothingHappens(t, b, r, settled)
			return time.Now().After(end)
		})
		require.Equal(t, acked, len(sent)-b.broker.left(t), "acknowledged while the database was away")
		if kind == onRabbitMQ { // all came back: the broker could give them to somebody else
			require.Equal(t, len(sent)-settled, b.broker.left(t))
			require.Zero(t, r.inFlight())
		}

		proxy.Refuse(false)
		r.awaitSettled(t, len(sent))
		r.finish(t)

		b.requireOneEffectEach(t, sent)
		require.Zero(t, b.broker.left(t))
		require.Zero(t, r.in.Stats().FailedAttempts, "an outage spends no attempt")
		require.Empty(t, b.letters(t))
		require.LessOrEqual(t, r.mostReturns(), 1, "given back more than once")
		if source, ok := source.(*rabbitmq.Source); ok {
			require.Zero(t, source.Stats().Failures, "the connection to the broker stays")
		}
	})
}

// requireNothingHappens is what an outage of the database looks like.
func requireNothingHappens(t *testing.T, b *testBundle, r *running, settled int) {
	t.Helper()
	s := r.in.Stats()
	require.True(t, s.Paused)
	require.Zero(t, s.FailedAttempts)
	require.Zero(t, s.Dead)
	require.Equal(t, settled, r.passed().settled, "settled while the database was away")
	effects := b.count(t)
	require.LessOrEqual(t, settled, effects, "settled and took no effect")
	require.LessOrEqual(t, effects, settled+workers, "more took effect than can have lost the answer to their COMMIT")
}

// load sends messages, a few at a time, until it is stopped. Next makes those
// that follow the first so many.
type load struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
	sent   []string // may be read once ended
	err    error    // may be read once ended
}

func startLoad(t *testing.T, b broker, next func(from int) []*handler.Message) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	l.ended.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for l.err == nil {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			msgs := next(len(l.sent))
			l.err = b.publish(context.WithoutCancel(ctx), msgs...)
			l.sent = append(l.sent, ids(msgs)...)
		}
	})
	t.Cleanup(func() { cancel(); l.ended.Wait() })
	return l
}

// stop ends the load and returns the ids of all that the broker keeps.
func (l *load) stop(t *testing.T) []string {
	t.Helper()
	l.cancel()
	l.ended.Wait()
	require.NoError(t, l.err)
	return l.sent
}
