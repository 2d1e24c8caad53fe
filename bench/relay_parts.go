package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/handler"
)

// outlet is where relays publish to, and plain clients too.
type outlet interface {
	// client names the plain client, for people.
	client() string

	// publishers are n of Semel's, with a connection each.
	publishers(n int) (publishers []handler.Publisher, done func(), err error)

	// send publishes with the plain client, and returns when all is confirmed.
	send(ctx context.Context, msgs []*handler.Message) error

	// clear forgets what was published, so that rounds are alike.
	clear() error
}

// relayParts compares relays that publish with its two parts, each measured
// alone: publishing the same messages with the plain client, and the database's
// side by hand.
func (b *bench) relayParts(ctx context.Context, o outlet, n int) (result, error) {
	publishers, done, err := o.publishers(instances)
	if err != nil {
		return result{}, err
	}
	defer done()
	db, err := newDatabase(ctx, fleetConns)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	msgs := newMessages(n)
	l, err := db.newBacklog(ctx, "backlog", n, oneByOne(msgs))
	if err != nil {
		return result{}, err
	}
	for _, msg := range msgs {
		msg.OccurredAt = time.Now().UTC() // an event has it
	}
	hand := l.drainedByHand(brokerBatch)
	var published, drained []float64
	parts := side{"parts", func(ctx context.Context) (float64, error) {
		if err := o.clear(); err != nil {
			return 0, err
		}
		send, err := timed(n, func() error { return o.send(ctx, msgs) })
		if err != nil {
			return 0, fmt.Errorf("publish with %s: %w", o.client(), err)
		}
		drain, err := hand(ctx)
		if err != nil {
			return 0, fmt.Errorf("drain by hand: %w", err)
		}
		published, drained = append(published, send), append(drained, drain)
		return oneAfterTheOther(send, drain), nil
	}}
	r, err := b.pairs(ctx, side{"relays", l.relayedTo(o, publishers)}, parts)
	if err != nil {
		return result{}, err
	}
	r.details = append(r.details,
		fmt.Sprintf("[%s alone %.0f/s, by hand alone %.0f/s]", o.client(), median(published), median(drained)),
		fmt.Sprintf("%d events of %d bytes, %d relays, batch %d", n, payloadBytes, len(publishers), brokerBatch))
	return r, nil
}

func (l *backlog) relayedTo(o outlet, publishers []handler.Publisher) func(context.Context) (float64, error) {
	return l.relayedAfter(brokerBatch, publishers, func(context.Context) (func(), error) { return func() {}, o.clear() })
}

// oneByOne gives messages out.
func oneByOne(msgs []*handler.Message) func() *handler.Message {
	i := 0
	return func() *handler.Message {
		i++
		return msgs[i-1]
	}
}

// hotAgainstSpread compares relays that publish events of which most are of one
// aggregate with relays that publish as many of all.
func (b *bench) hotAgainstSpread(ctx context.Context, o outlet, nHot, nSpread int) (result, error) {
	publishers, done, err := o.publishers(instances)
	if err != nil {
		return result{}, err
	}
	defer done()
	db, err := newDatabase(ctx, fleetConns)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	hot, err := db.newBacklog(ctx, "hot", nHot, newHotMessage)
	if err != nil {
		return result{}, err
	}
	spread, err := db.newBacklog(ctx, "spread", nSpread, newMessage)
	if err != nil {
		return result{}, err
	}
	r, err := b.pairs(ctx, side{"hot", hot.relayedTo(o, publishers)}, side{"spread", spread.relayedTo(o, publishers)})
	r.details = append(r.details, fmt.Sprintf("%d relays; hot: 9 of 10 of %d events are of one aggregate, spread: %d events of %d", len(publishers), nHot, nSpread, accounts))
	return r, err
}
