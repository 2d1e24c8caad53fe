package transporttest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/transporttest"
)

// publisher damages how messages are published.
func publisher(publish func(context.Context, handler.Publisher, []*handler.Message) []error) func(transporttest.Transport) transporttest.Transport {
	return func(tr transporttest.Transport) transporttest.Transport {
		inner := tr.Publisher
		tr.Publisher = publisherFunc(func(ctx context.Context, msgs []*handler.Message) []error { return publish(ctx, inner, msgs) })
		return tr
	}
}

// source damages every source.
func source(damage func(handler.Source) handler.Source) func(transporttest.Transport) transporttest.Transport {
	return func(tr transporttest.Transport) transporttest.Transport {
		newMember := tr.NewMember
		tr.NewMember = func(t testing.TB) transporttest.Member {
			m := newMember(t)
			m.Source = damage(m.Source)
			return m
		}
		return tr
	}
}

// sink damages what a source does with its sink; pausing still works.
func sink(damage func(handler.Sink) handler.Sink) func(transporttest.Transport) transporttest.Transport {
	return source(func(s handler.Source) handler.Source {
		run := sourceFunc(func(ctx context.Context, to handler.Sink) error { return s.Run(ctx, damage(to)) })
		return &pausing{Source: run, pause: s.(handler.Pauser).Pause, resume: s.(handler.Pauser).Resume}
	})
}

// delivery damages every delivery.
func delivery(damage func(*handler.Delivery)) func(transporttest.Transport) transporttest.Transport {
	return counted(func(_ int64, d *handler.Delivery) { damage(d) })
}

// counted damages every delivery, knowing how many there were before.
func counted(damage func(n int64, d *handler.Delivery)) func(transporttest.Transport) transporttest.Transport {
	var n atomic.Int64
	return sink(func(inner handler.Sink) handler.Sink {
		return sinkFunc(func(ctx context.Context, d *handler.Delivery) error {
			damaged := *d // or a fault in Settled would see itself
			damage(n.Add(1), &damaged)
			return inner.Deliver(ctx, &damaged)
		})
	})
}

// header damages every header.
func header(damage func(*handler.Header)) func(transporttest.Transport) transporttest.Transport {
	return delivery(func(d *handler.Delivery) {
		for i := range d.Message.Headers {
			damage(&d.Message.Headers[i])
		}
	})
}

func noNil(d *handler.Delivery) {
	d.Message.Payload = append([]byte{}, d.Message.Payload...)
	for i, h := range d.Message.Headers {
		d.Message.Headers[i].Value = append([]byte{}, h.Value...)
	}
}

// swapper delivers every second message before the first.
type swapper struct {
	inner handler.Sink
	first *handler.Delivery
}

func (s *swapper) Deliver(ctx context.Context, d *handler.Delivery) error {
	if s.first == nil {
		s.first = d
		return nil
	}
	first := s.first
	s.first = nil
	return errors.Join(s.inner.Deliver(ctx, d), s.inner.Deliver(ctx, first))
}

// heap makes a member that dies leave what it had out behind the rest, the last
// first.
func heap(tr transporttest.Transport) transporttest.Transport {
	newMember, publisher := tr.NewMember, tr.Publisher
	tr.NewMember = func(t testing.TB) transporttest.Member {
		var mu sync.Mutex // guards out
		var out []*handler.Delivery
		m := newMember(t)
		inner, die := m.Source, m.Abort
		m.Source = sourceFunc(func(ctx context.Context, to handler.Sink) error {
			return inner.Run(ctx, sinkFunc(func(ctx context.Context, d *handler.Delivery) error {
				mu.Lock()
				out = append(out, d)
				mu.Unlock()
				return to.Deliver(ctx, d)
			}))
		})
		m.Abort = func() {
			mu.Lock()
			defer mu.Unlock()
			for i := len(out) - 1; i >= 0; i-- {
				publisher.Publish(t.Context(), []*handler.Message{out[i].Message})
				out[i].Settled()
			}
			die()
		}
		return m
	}
	return tr
}

// multiple acknowledges all that was delivered before, as AMQP's flag of that
// name does.
type multiple struct {
	inner  handler.Sink
	mu     sync.Mutex // guards before
	before []func()
}

func (m *multiple) Deliver(ctx context.Context, d *handler.Delivery) error {
	m.mu.Lock()
	m.before = append(m.before, d.Settled)
	upTo := m.before
	m.mu.Unlock()
	d.Settled = func() {
		for _, settled := range upTo {
			settled()
		}
	}
	return m.inner.Deliver(ctx, d)
}

type pausing struct {
	handler.Source
	pause, resume func()
}

func (p *pausing) Pause()  { p.pause() }
func (p *pausing) Resume() { p.resume() }

type publisherFunc func(ctx context.Context, msgs []*handler.Message) []error

func (f publisherFunc) Publish(ctx context.Context, msgs []*handler.Message) []error {
	return f(ctx, msgs)
}

type sourceFunc func(ctx context.Context, sink handler.Sink) error

func (f sourceFunc) Run(ctx context.Context, sink handler.Sink) error { return f(ctx, sink) }

type sinkFunc func(ctx context.Context, d *handler.Delivery) error

func (f sinkFunc) Deliver(ctx context.Context, d *handler.Delivery) error { return f(ctx, d) }
