package handler

import "context"

// Source is where messages come from: a Kafka group member, a RabbitMQ
// consumer, a queue in memory.
//
// Run delivers messages to sink until ctx ends. Then it takes no more, waits
// until every [Delivery] it handed out is settled or returned, acknowledges
// what is settled, and returns nil. It returns an error when it cannot go on:
// the topic is forbidden, the configuration is impossible. What it can wait
// out (a broker that is away) it waits out.
//
// Run must not acknowledge a message before its Settled was called, and must
// deliver a message again that was returned: at once if it still can, else
// through the broker's own redelivery.
type Source interface {
	Run(ctx context.Context, sink Sink) error
}

// Sink is the engine's side of a [Source].
//
// Deliver takes a delivery over. It blocks while the engine is full or paused.
// When it returns nil, exactly one of Settled and Returned will be called,
// once, from any goroutine, possibly before Deliver returns. When it returns
// an error (ctx ended, the engine is draining) neither will be called and the
// message was not taken: the source offers it again after a pause, or lets it
// come again. It is safe for concurrent use.
type Sink interface {
	Deliver(ctx context.Context, d *Delivery) error
}

// Delivery is one arrival of a message.
type Delivery struct {
	// Message must not be nil and belongs to the engine until the delivery is
	// settled or returned.
	Message *Message

	// Settled says that the message's outcome is committed: acknowledge it, in
	// the source's own order. It must be quick and must not call the sink.
	Settled func()

	// Returned says that the message was not settled (the engine drains, its
	// database is away, the delivery was revoked): it must come again.
	Returned func(error)

	// Revoked, once closed, tells the engine not to start this delivery any
	// more; if it runs already, it is left to finish. Nil: never revoked. All
	// deliveries of one assignment share one channel.
	Revoked <-chan struct{}
}

// Pauser is a [Source] that can stop taking messages while the engine waits
// for something, and keep its place: Kafka pauses its partitions, RabbitMQ
// cancels its consumer. Both methods return at once and may be called in any
// state, repeatedly, from any goroutine. A source that is paused before Run
// starts paused.
type Pauser interface {
	Pause()
	Resume()
}

// RecallingPauser is a [Pauser] whose Pause takes back what it has handed out, as far
// as it was not started: it closes Revoked.
//
// PauseRecalls reports that it does. The engine may keep what it has started, which
// can be settled all the same, so that it has something at hand to try with whether
// it may go on: else each trial would have to be fetched from the broker, with all
// that the broker sends along.
type RecallingPauser interface {
	Pauser
	PauseRecalls() bool
}

// OrderedSource is a [Source] that can keep the order of a key, which ordering
// Strict asks for.
//
// KeepsOrder returns nil when messages of one key reach one Run at a time, in
// the order the broker received them, and when those that were out come again
// in that order, before any that was not: after a return, a pause, a lost
// connection, at a drain and a death, to this Run or the next. Else its error
// says why not, and what to do. It does no I/O: what only the broker knows is
// looked at by Run, which returns an error when it is not so.
//
// For that, whoever returns a delivery must start none of its key that came
// after it, and return these too.
type OrderedSource interface {
	Source
	KeepsOrder() error
}

// Publisher sends messages to a broker.
//
// Publish returns one result for each message, in the same order; nil only
// when the broker has confirmed that it keeps the message. An error for which
// [IsPermanent] is true will not go away by trying again. Every other error
// leaves open whether the broker has the message: publishing it again under
// the same id is right. It is safe for concurrent use.
type Publisher interface {
	Publish(ctx context.Context, msgs []*Message) []error
}

// OrderedPublisher is a [Publisher] that may be given several messages of one
// key at once: they reach the broker in order, and if one of them fails, those
// that follow it in the same call fail too. A publisher that cannot say so is
// given one at a time.
type OrderedPublisher interface {
	Publisher
	KeepsOrder() bool
}

// LimitedPublisher is a [Publisher] that sends only so many messages at once: one
// that is given more has the rest wait for their turn, in time that was meant for
// sending. AtOnce must be at least 1, and always the same.
type LimitedPublisher interface {
	Publisher
	AtOnce() int
}
