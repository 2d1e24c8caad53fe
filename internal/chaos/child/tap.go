package main

import (
	"context"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// tap wraps a source so that each delivery passes the trap on its way to the
// engine and back: the points around the acknowledgement.
func tap(src handler.OrderedSource, t *trap) handler.OrderedSource {
	tapped := tappedSource{src, t}
	if p, ok := src.(handler.Pauser); ok {
		return struct {
			handler.OrderedSource
			handler.Pauser
		}{tapped, p}
	}
	return tapped
}

type tappedSource struct {
	handler.OrderedSource
	trap *trap
}

// Run implements [handler.Source].
func (s tappedSource) Run(ctx context.Context, sink handler.Sink) error {
	return s.OrderedSource.Run(ctx, tappedSink{sink, s.trap})
}

type tappedSink struct {
	handler.Sink
	trap *trap
}

// Deliver implements [handler.Sink].
func (s tappedSink) Deliver(ctx context.Context, d *handler.Delivery) error {
	n := wire.CopyOf(d.Message)
	tapped := *d
	tapped.Settled = func() {
		s.trap.goes(d.Message)
		s.trap.report(wire.Settled, n)
		s.trap.pass(wire.BeforeAck, n)
		d.Settled()
		s.trap.report(wire.Acked, n)
		s.trap.pass(wire.AfterAck, n)
	}
	tapped.Returned = func(err error) {
		s.trap.goes(d.Message)
		s.trap.report(wire.Returned, n)
		d.Returned(err)
	}
	s.trap.comes(d.Message)
	s.trap.report(wire.Delivered, n) // before, because it can be settled before Deliver returns
	err := s.Sink.Deliver(ctx, &tapped)
	if err != nil {
		s.trap.goes(d.Message)
		s.trap.report(wire.Refused, n)
	}
	return err
}
