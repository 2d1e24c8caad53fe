package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// typeOfDead is the type of the event of a message that has no usable one.
const typeOfDead = "dead-letter"

// untoldError says that the event of a dead letter could not be written. The
// letter could.
type untoldError struct{ err error }

func (e *untoldError) Error() string { return e.err.Error() }
func (e *untoldError) Unwrap() error { return e.err }

// route writes the event by which the broker is told of a dead letter, in the
// transaction of the letter: there are both or none. refused is why the database
// did not take the event before; then less is told.
//
// Nothing that a message holds keeps its letter from being written: what an
// event cannot carry is left out of it, and the event says so.
func (in *Inbox) route(ctx context.Context, tx pgx.Tx, letter *dlq.Letter, refused error) error {
	if in.cfg.DeadLetterRoute == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(handler.WithCause(ctx, nil), in.cfg.StatementTimeout) // whoever called Process is not the cause
	defer cancel()
	event := letterEvent(in.cfg.DeadLetterRoute, letter, refused)
	if len(letter.Message.Key) > 0 { // other processes may have letters of this key: their commits decide the order
		if err := outbox.Lock(ctx, tx, event.AggregateType, event.AggregateID); err != nil {
			return err
		}
	}
	if err := in.events.Write(ctx, tx, event); err != nil {
		return &untoldError{err}
	}
	return nil
}

// untold is why the database refused the event that tells of the message's death.
func (t *task) untold() error {
	if t.buried == nil {
		return nil
	}
	return t.buried.untold
}

// letterEvent is the message of a letter as it came, under an id of its own,
// with headers that say how it died. Its consumers recognise by that id what is
// published twice, and by the original id what died twice.
func letterEvent(route string, letter *dlq.Letter, refused error) outbox.Event {
	msg := *letter.Message
	var changes []string
	changed := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	switch size := len(msg.Payload); {
	case refused != nil:
		changed("payload of %d bytes and %d headers left out, because the database refused them in the outbox: %s", size, len(msg.Headers), refused)
		msg.Payload, msg.Headers = []byte{}, nil
	case size > outbox.MaxPayload:
		changed("payload of %d bytes left out: an event holds at most %d", size, outbox.MaxPayload)
		msg.Payload = []byte{} // not nil, which is a tombstone
	}
	kept, unusable := sendable(msg.Headers)
	if msg.Headers = kept; unusable > 0 {
		changed("%d headers left out: their names are empty, no text, or over %d bytes", unusable, outbox.MaxName)
	}

	var more handler.Headers
	tell := func(name string, value []byte) { more = append(more, handler.Header{Name: name, Value: value}) }
	key := keyOf(letter)
	if key != string(msg.Key) {
		tell(dlq.HeaderOriginalKey, msg.Key)
	}
	typ := firstUsable(msg.Type, typeOfDead)
	if typ != msg.Type {
		tell(dlq.HeaderOriginalType, []byte(msg.Type))
	}
	if len(changes) > 0 {
		tell(dlq.HeaderAltered, []byte(strings.Join(changes, "; ")))
	}
	conversation := msg.CorrelationID
	if conversation == "" {
		conversation = msg.ID // it began it
	}
	told := *letter
	told.Message = &msg
	return outbox.Event{
		AggregateType: route, AggregateID: key, Type: typ, Version: msg.Version,
		Payload: msg.Payload, ContentType: firstUsable(msg.ContentType), OccurredAt: happened(&msg),
		CorrelationID: firstUsable(conversation), CausationID: firstUsable(msg.CausationID), Source: firstUsable(msg.Source),
		Headers: told.WriteHeaders(more...),
	}
}

// keyOf is the key under which the broker is told of a letter: the message's
// own, or what stands for it. Letters of one key have one.
func keyOf(letter *dlq.Letter) string {
	msg := letter.Message
	switch {
	case usable(string(msg.Key)):
		return string(msg.Key)
	case len(msg.Key) > 0:
		return uuid.UUID(dedup.HashID([]byte("key"), msg.Key)).String()
	case usable(msg.ID):
		return msg.ID
	default:
		return uuid.UUID(letter.MessageID).String()
	}
}

// sendable returns the headers that an event can have, and how many it cannot.
func sendable(headers handler.Headers) (kept handler.Headers, unusable int) {
	for _, h := range headers {
		switch {
		case !usable(h.Name):
			unusable++
		case h.Name == outbox.HeaderAttempt: // to publish the message, not this event
		default:
			kept = append(kept, h)
		}
	}
	return kept, unusable
}

// happened is when the message's event happened, as far as anybody knows.
func happened(msg *handler.Message) time.Time {
	for _, t := range [...]time.Time{msg.OccurredAt, msg.Origin.Time} {
		if year := t.UTC().Year(); !t.IsZero() && year >= 0 && year <= 9999 {
			return t
		}
	}
	return time.Time{}
}

// usable reports whether a text from outside can stand in an event.
func usable(text string) bool {
	return strings.TrimSpace(text) != "" && len(text) <= outbox.MaxName && utf8.ValidString(text) && strings.IndexByte(text, 0) < 0
}

func firstUsable(texts ...string) string {
	for _, text := range texts {
		if usable(text) {
			return text
		}
	}
	return ""
}

// errNotWritten ends a transaction that was to show whether it could be done.
var errNotWritten = errors.New("not to be committed")

// checkRoute finds out at start whether events can be written: it writes one, and
// takes it back.
func (in *Inbox) checkRoute(ctx context.Context) error {
	if in.cfg.DeadLetterRoute == "" {
		return nil
	}
	err := pgx.BeginFunc(ctx, in.pool, func(tx pgx.Tx) error {
		event := letterEvent(in.cfg.DeadLetterRoute, &dlq.Letter{Message: &handler.Message{}}, nil)
		if err := in.events.Write(handler.WithCause(ctx, nil), tx, event); err != nil {
			return err
		}
		return errNotWritten
	})
	if errors.Is(err, errNotWritten) {
		return nil
	}
	const doing = "see whether events of dead letters can be written (DeadLetterRoute is set)"
	switch sqlState(err) {
	case codeForbidden:
		return fmt.Errorf("%s: %w: %w: grant it what semel migrate grants prints for an application", doing, schema.ErrForbidden, err)
	case codeNoTable:
		return fmt.Errorf("%s: %w: run semel migrate up", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, in.explainPooler(err))
}
