package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// look is what a run remembers of its looks at whether others may take from
// the queue.
type look struct {
	whileWaiting bool // it has looked while another consumer had the queue
	trusted      bool // it has said that it takes the config's word
}

// refuseShared returns what came of registering a consumer, or why the broker
// will not keep the queue to one. It looks with the consumer in place: from then
// on a queue that is made anew ends the consumer. While another has the queue it
// looks once, for a config that can never succeed.
func (c *consumer) refuseShared(ctx context.Context, conn *connection, registered error) error {
	if occupied := errors.Is(registered, errOccupied); registered != nil && !occupied || occupied && c.shared.whileWaiting {
		return registered
	} else if occupied {
		c.shared.whileWaiting = true
	}
	q := newInspection(conn, c.config.Queue)
	err := q.askKind()
	switch {
	case conn.amqp.IsClosed():
		// Hence %v: what the broker says to this question is no refusal of ours.
		return fmt.Errorf("look whether the queue is for one consumer: %v", err) //nolint:errorlint // on purpose
	case errors.Is(err, errNoQueue):
		return registered
	case err != nil && !c.shared.trusted:
		c.shared.trusted = true
		c.config.Logger.LogAttrs(ctx, slog.LevelInfo, "cannot tell whether the broker keeps this queue to one consumer: taking the configuration's word for it",
			slog.String("queue", c.config.Queue), slog.String("broker", c.config.link().broker()), slog.Any("error", err))
	case err == nil:
		if err := q.kindFor(c.config); err != nil {
			return err
		}
	}
	return registered
}

// askKind asks for what kindFor needs.
func (i *inspection) askKind() error { return i.ask(argSingleActive, argQueueType) }

// kindFor returns why this queue is not what config says of it, or nil.
func (i *inspection) kindFor(config SourceConfig) error {
	kind, single := i.found[argQueueType], i.found[argSingleActive] == true
	switch {
	case config.SingleActiveConsumer && !single:
		return fmt.Errorf("%w: it was declared without %s, so others may take from it too: "+
			"declare it anew with that argument set to true, or, if it is a classic queue, set Exclusive instead of SingleActiveConsumer", errShared, argSingleActive)
	case config.Exclusive && single:
		return fmt.Errorf("%w: it was declared with %s and refuses exclusive consumers: set SingleActiveConsumer instead of Exclusive", errShared, argSingleActive)
	case config.Exclusive && kind != nil && kind != "classic":
		return fmt.Errorf("%w: a %v queue is open to others beside an exclusive consumer: "+
			"declare it anew with %s, and set SingleActiveConsumer instead of Exclusive", errShared, kind, argSingleActive)
	default:
		return nil
	}
}
