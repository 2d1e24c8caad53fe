package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// defaultDeliveryLimit is what a quorum queue has from RabbitMQ 4.0 on when it
// was declared without a limit.
const defaultDeliveryLimit = 20

// warnOfLimits looks once in a run, before anything is consumed, whether the
// broker may drop messages of this queue, and says so in the log. Our promise
// is about messages we see, and these nobody ever sees.
//
// Whatever comes of it, consuming goes on. An error says that the connection
// was lost meanwhile; it is never one that ends Run, and the look is not
// repeated, or a broker that minds it would never be consumed.
func (c *consumer) warnOfLimits(ctx context.Context, conn *connection) error {
	if c.inspected {
		return nil
	}
	q := newInspection(conn, c.config.Queue)
	version := majorVersion(conn)
	err := q.inspect(version)
	if errors.Is(err, errNoQueue) {
		return nil // to consume it will be refused, with a better text
	}
	c.inspected = true
	log := c.config.Logger.With(slog.String("queue", c.config.Queue), slog.String("broker", c.config.link().broker()))
	switch {
	case conn.amqp.IsClosed():
		// Hence %v: what the broker says to this question is no refusal of ours.
		return fmt.Errorf("look at the limits of the queue: %v", err) //nolint:errorlint // on purpose
	case err != nil:
		log.LogAttrs(ctx, slog.LevelInfo, "cannot tell whether the broker drops messages of this queue: "+
			"if it has a TTL, a length limit or a delivery limit, see to it that it has a dead letter exchange too", slog.Any("error", err))
		return nil
	}
	if limits := q.limits(version); len(limits) > 0 {
		log.LogAttrs(ctx, slog.LevelWarn, "the broker drops messages of this queue at its limit, and it was declared without a dead letter exchange: "+
			"such messages are lost, Semel never sees them; declare it with x-dead-letter-exchange, or set dead-letter-exchange by a policy (one that does so already cannot be seen from here)",
			slog.String("limits", strings.Join(limits, ", ")))
	}
	if ends := q.ends(); len(ends) > 0 {
		log.LogAttrs(ctx, slog.LevelWarn, "the broker deletes this queue with all messages in it when it has been without a consumer: "+
			"they are lost, Semel never sees them, and a dead letter exchange does not get them; declare it without",
			slog.String("limits", strings.Join(ends, ", ")))
	}
	return nil
}

// inspect asks for what limits and ends need. It asks for little, because the
// broker tells on its way there what else the queue has: it compares a dead
// letter exchange, an expiry and the number of messages before the number of
// bytes, and the delivery limit of a quorum queue before the TTL. Only where
// there is a limit is nothing left to that order.
func (i *inspection) inspect(version int) error {
	err := i.ask(argMessageTTL, argMaxLengthBytes, argDeliveryLimit)
	if err == nil && len(i.limits(version)) > 0 {
		err = i.ask(argDeadLetterExchange, argOverflow)
	}
	return err
}

// limits returns at what the broker drops messages without a trace.
func (i *inspection) limits(version int) []string {
	if i.has(argDeadLetterExchange) || i.found[argQueueType] == "stream" { // a stream is a log, kept for a time
		return nil
	}
	var limits []string
	add := func(argument string) {
		if i.has(argument) {
			limits = append(limits, fmt.Sprintf("%s=%v", argument, i.found[argument]))
		}
	}
	add(argMessageTTL)
	overflow, _ := i.found[argOverflow].(string)
	if !strings.HasPrefix(overflow, "reject-publish") { // else the publisher is told, and keeps it
		add(argMaxLength)
		add(argMaxLengthBytes)
	}
	limit, quorum := i.found[argDeliveryLimit] // no other type has it compared
	switch n, _ := limit.(int64); {
	case n < 0: // unlimited
	case limit != nil:
		add(argDeliveryLimit)
	case quorum && version >= 4:
		limits = append(limits, fmt.Sprintf("%s=%d by default", argDeliveryLimit, defaultDeliveryLimit))
	}
	return limits
}

// ends returns what makes the broker delete the queue.
func (i *inspection) ends() []string {
	var ends []string
	if i.has(argExpires) {
		ends = append(ends, fmt.Sprintf("%s=%v", argExpires, i.found[argExpires]))
	}
	if i.autoDelete {
		ends = append(ends, "auto-delete")
	}
	return ends
}

// majorVersion returns the first number of the broker's version, or 0.
func majorVersion(conn *connection) int {
	version, _ := conn.amqp.Properties["version"].(string)
	major, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(major)
	return n
}
