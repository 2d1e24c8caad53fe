package rabbitmq_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// While some messages run, one is offered to a full engine and more wait in the
// client: none of those behind may be faster than those that go back.
func TestSource_OrderIsKept(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		trouble func(r *running, l *line)
	}{
		{name: "Paused", trouble: func(r *running, _ *line) { r.source.Pause() }},
		{name: "PausedAndResumedAtOnce", trouble: func(r *running, _ *line) { r.source.Pause(); r.source.Resume() }},
		{name: "ConnectionCut", trouble: func(_ *running, l *line) { l.cut(false) }},
		{name: "Returned", trouble: func(*running, *line) {}},
	}
	for _, o := range orders() {
		for _, tt := range tests {
			t.Run(o.name+tt.name, func(t *testing.T) {
				t.Parallel()

				b, l := setup(t), &line{}
				b.redeclare(t, false, false, o.arguments)
				b.publish(t, numbered(1, 20)...)
				config := b.sourceConfig()
				config.Dial, config.Prefetch = l.dial, 8
				o.config(&config)
				r := run(t, config, transporttest.SinkConfig{Limit: 4})
				first, second := r.next(t, "1"), r.next(t, "2")
				third, fourth := r.next(t, "3"), r.next(t, "4")
				r.sink.AwaitBlocked(t)

				tt.trouble(r, l)
				second.Settled() // its neighbour runs on
				fourth.Returned(errGiveBack)
				third.Returned(errGiveBack)
				requireRevoked(t, first)
				first.Settled()
				r.source.Resume()

				r.requireRest(t, 3, 20)
				r.stop(t)
				b.requireEmpty(t)
			})
		}
	}
}

// requireRest returns what was revoked, as the engine does, and requires that
// what is left are the messages from first to last, in order. What was settled
// on a connection that was cut may come again, in its place.
func (r *running) requireRest(t *testing.T, first, last int) {
	t.Helper()
	done := first - 1
	before := 0
	for done < last {
		d := r.sink.Next(t)
		select {
		case <-d.Revoked:
			d.Returned(errGiveBack)
			before = 0
			continue
		default:
		}
		n, err := strconv.Atoi(d.Message.ID)
		require.NoError(t, err)
		require.Greater(t, n, before)
		require.LessOrEqual(t, n, done+1, "it came before one that is not done")
		before, done = n, max(done, n)
		d.Settled()
	}
}

// numbered are messages called first to last.
func numbered(first, last int) []amqp.Publishing {
	var messages []amqp.Publishing
	for i := first; i <= last; i++ {
		messages = append(messages, text(strconv.Itoa(i)))
	}
	return messages
}

// Two processes, one of them active, are cut off, paused, stopped and started
// anew, and give back at random: whoever handles a message finds all those
// before it done.
func TestSource_OrderInTrouble(t *testing.T) {
	t.Parallel()

	for _, o := range orders() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()

			const messages, batch = 600, 12
			b := setup(t)
			b.redeclare(t, false, false, o.arguments)
			ledger := &ledger{}
			start := func() *worker {
				l := &line{}
				config := b.sourceConfig()
				config.Dial, config.Prefetch = l.dial, 8
				o.config(&config)
				return newWorker(t, rabbitmq.NewSource(config), l, ledger)
			}
			workers := []*worker{start(), start()}
			for first := 1; first <= messages; first += batch {
				b.publish(t, numbered(first, first+batch-1)...)
				ledger.await(t, first+rand.IntN(batch)-1)
				w := rand.IntN(2)
				switch rand.IntN(4) {
				case 0:
					workers[w].line.cut(false)
				case 1:
					workers[w].source.Pause()
					workers[w].source.Resume()
				case 2:
					workers[w].stop(t)
					workers[w] = start()
				case 3:
					ledger.giveBackNext()
				}
			}
			ledger.await(t, messages)
			for _, w := range workers {
				w.stop(t)
			}
			require.Empty(t, ledger.faults)
			b.requireEmpty(t)
		})
	}
}

// ledger is the database that two workers share: which message was done last.
type ledger struct {
	mu       sync.Mutex // guards what follows
	done     int
	giveBack bool
	faults   []string
}

// handle does the message with this number, or says that it goes back.
func (l *ledger) handle(n int) (settled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.giveBack {
		l.giveBack = false
		return false
	}
	if n > l.done+1 {
		l.faults = append(l.faults, fmt.Sprintf("%d came when only %d were done", n, l.done))
	}
	l.done = max(l.done, n)
	return true
}

func (l *ledger) giveBackNext() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveBack = true
}

func (l *ledger) await(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.done >= n || len(l.faults) > 0
	}, 2*patience, tick, "the messages up to %d are not done", n)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.faults)
}

// worker handles what its source delivers one after the other, as the engine
// does with the messages of one key.
type worker struct {
	source *rabbitmq.Source
	line   *line
	ledger *ledger
	cancel context.CancelFunc
	ended  chan error

	mu   sync.Mutex // guards what follows
	lane []*handler.Delivery
	busy bool
}

func newWorker(t *testing.T, source *rabbitmq.Source, l *line, book *ledger) *worker {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &worker{source: source, line: l, ledger: book, cancel: cancel, ended: make(chan error, 1)}
	gone := make(chan struct{})
	go func() { defer close(gone); w.ended <- source.Run(ctx, w) }()
	t.Cleanup(func() { cancel(); <-gone })
	return w
}

func (w *worker) stop(t *testing.T) {
	t.Helper()
	w.cancel()
	require.NoError(t, <-w.ended)
}

// Deliver implements [handler.Sink].
func (w *worker) Deliver(_ context.Context, d *handler.Delivery) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lane = append(w.lane, d)
	if !w.busy {
		w.busy = true
		go w.work()
	}
	return nil
}

func (w *worker) work() {
	for {
		w.mu.Lock()
		if len(w.lane) == 0 {
			w.busy = false
			w.mu.Unlock()
			return
		}
		d := w.lane[0]
		w.lane = w.lane[1:]
		w.mu.Unlock()

		select {
		case <-d.Revoked:
			d.Returned(errGiveBack)
			continue
		default:
		}
		n, _ := strconv.Atoi(d.Message.ID)
		if w.ledger.handle(n) {
			d.Settled()
			continue
		}
		d.Returned(errGiveBack)
	}
}

// What is out of a quorum queue is always its front, unless somebody else took
// from it: it cannot be put right, so it is said.
func TestSource_LostOrderIsSaid(t *testing.T) {
	t.Parallel()

	b, log := setup(t), &logbook{}
	b.redeclare(t, false, false, amqp.Table{"x-queue-type": "quorum", "x-single-active-consumer": true})
	b.publish(t, numbered(1, 6)...)
	for _, prefetch := range []int{5, 2} { // the second takes less than the first gave back
		ch, err := b.conn.Channel()
		require.NoError(t, err)
		require.NoError(t, ch.Qos(prefetch, 0, false))
		deliveries, err := ch.Consume(b.queue, "", false, false, false, false, nil)
		require.NoError(t, err)
		for i := range prefetch {
			require.Equal(t, strconv.Itoa(i+1), (<-deliveries).MessageId)
		}
		require.NoError(t, ch.Close())
	}

	config := b.sourceConfig()
	config.SingleActiveConsumer, config.Logger = true, log.logger()
	r := run(t, config, transporttest.SinkConfig{})
	var arrived []string
	for range 6 {
		d := r.sink.Next(t)
		arrived = append(arrived, d.Message.ID)
		d.Settled()
	}
	r.stop(t)

	require.Equal(t, "3 4 5 1 2 6", strings.Join(arrived, " "))
	lines := log.lines("the queue has lost its order")
	require.NotEmpty(t, lines)
	require.Contains(t, lines[0], "level=ERROR")
	require.Contains(t, lines[0], b.queue)
}
