package rabbitmq

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// refusedFor is how long nothing more is tried with an exchange that the broker
// refused. What is sent there would end the channel under all others.
const refusedFor = time.Second

// refusal is why nothing can be published to an exchange.
type refusal struct {
	err   error
	until time.Time
}

// reach looks whether an exchange is there before the first message goes to it
// on a channel: one to an exchange that is missing ends the channel, and nobody
// knows what became of the messages that were out to others. The look needs no
// rights. Its error wraps [ErrExchangeRefused], or is the connection's.
func (w *window) reach(exchange string) error {
	if r, ok := w.refusals[exchange]; ok && time.Now().Before(r.until) {
		return r.err
	}
	if exchange == "" || w.reached[exchange] { // the default exchange is always there
		return nil
	}
	ch, err := w.ch.conn.channel()
	if err != nil {
		return err
	}
	err = ch.do("look for the exchange", func() error { return ch.ExchangeDeclarePassive(exchange, "", false, false, false, false, nil) })
	switch {
	case hasCode(err, amqp.NotFound):
		return w.refuse(exchange, err)
	case err != nil && w.ch.conn.amqp.IsClosed():
		return err
	case err == nil:
		_ = ch.do("close the channel", ch.Close)
	}
	w.reached[exchange] = true // or the broker does not tell: it will when we publish
	return nil
}

// refuse notes that the broker refused an exchange, and returns what is said of
// the messages to it.
func (w *window) refuse(exchange string, err error) error {
	now := time.Now()
	maps.DeleteFunc(w.refusals, func(_ string, r refusal) bool { return !now.Before(r.until) })
	err = fmt.Errorf("%w (%w): declare it, or give the user the right to write to it", ErrExchangeRefused, err)
	w.refusals[exchange] = refusal{err: err, until: now.Add(refusedFor)}
	return err
}

// refuses reports whether err, with which a channel ended, is about what was
// published to an exchange: it was deleted meanwhile, is internal, or the user
// may not write to it. Only the broker's text tells which exchange it was. A
// routing key that the user may not use is not the exchange's fault.
func refuses(err error, exchange string) bool {
	if exchange == "" {
		exchange = "amq.default" // as the broker calls it
	}
	var e *amqp.Error
	return refused(err) && errors.As(err, &e) &&
		strings.Contains(e.Reason, "exchange '"+exchange+"' in vhost '") && !strings.Contains(e.Reason, "access to topic '")
}
