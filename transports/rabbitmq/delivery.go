package rabbitmq

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/semel-go/semel/internal/jitter"
)

// delivery is one delivery that is out. It answers on the channel it came
// from, whatever has become of it: a tag means nothing on another channel, and
// the broker closes a channel on which a tag is answered twice.
type delivery struct {
	flight   *flight
	back     *guard
	tag      uint64
	answered atomic.Bool

	before, after *delivery // of those that are out on the channel; guarded by acks.mu
}

func (d *delivery) settled()       { d.end(d.back.acknowledge) }
func (d *delivery) returned(error) { d.end(d.back.giveBack) }

func (d *delivery) end(answer func(*delivery)) {
	if d.answered.CompareAndSwap(false, true) {
		answer(d)
		d.flight.done()
	}
}

// guard answers the deliveries of one channel and keeps a message that is
// returned again and again from spinning between us and the broker. It is safe
// for concurrent use.
//
// An answer that fails is no loss: then the channel has ended, and the broker
// delivers again what it had out on it. The next delivery is a duplicate.
type guard struct {
	*acks
	spare int // how many may be returned at once: a whole prefetch, as at a pause

	// left, if set, is called for each that goes back, before its Returned has
	// returned. Nothing is requeued then, all is left to the end of the channel.
	// See [consumer.stint].
	left     func(returned bool)
	progress atomic.Bool // something was settled

	mu       sync.Mutex
	returns  int                         // guarded by mu; in a row, nothing settled in between
	patience *backoff.ExponentialBackOff // guarded by mu
}

func newGuard(ch *channel, prefetch int) *guard {
	return &guard{acks: newAcks(ch, prefetch), spare: prefetch, patience: jitter.New(50*time.Millisecond, 5*time.Second)}
}

func (g *guard) acknowledge(d *delivery) {
	g.settle(d)
	g.progress.Store(true)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returns = 0
	g.patience.Reset()
}

func (g *guard) requeue(d *delivery) {
	if g.left != nil {
		g.left(false)
		return
	}
	_ = g.ch.Nack(d.tag, false, true)
	g.drop(d)
}

// giveBack requeues at once, or after a while when nothing but returns has come
// for more than a prefetch. A message that waits for that stays out, so the
// broker sends no other for it.
func (g *guard) giveBack(d *delivery) {
	if g.left != nil {
		g.left(true)
		return
	}
	g.mu.Lock()
	g.returns++
	var delay time.Duration
	if g.returns > g.spare {
		delay = g.patience.NextBackOff()
	}
	g.mu.Unlock()
	if delay == 0 {
		g.requeue(d)
		return
	}
	time.AfterFunc(delay, func() { g.requeue(d) }) // on a channel that has gone it does nothing
}
