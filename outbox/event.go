package outbox

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/semel-go/semel/handler"
)

// Bounds of an event.
const (
	// MaxName is the longest aggregate type, aggregate id, type or header name,
	// in bytes: what AMQP can carry.
	MaxName = 255

	// MaxPayload is the largest payload in bytes. Brokers allow less unless they
	// are told otherwise.
	MaxPayload = 16 << 20
)

// ErrBadEvent is returned for an event that could never be published.
var ErrBadEvent = errors.New("unusable event")

// Event is something that happened to an aggregate, as others are told.
// AggregateType, AggregateID and Type are required.
type Event struct {
	// ID is how consumers recognise copies: a UUID in lower case, canonical
	// form. Defaults to a new one, see [NewID].
	ID string

	// AggregateType is the kind of thing it happened to, "order" for one. By
	// default it decides the topic or exchange.
	AggregateType string

	// AggregateID is which of them. It is the ordering key on the broker.
	AggregateID string

	// Type says what happened: "OrderPaid".
	Type string

	// Version is the sequence number of the aggregate, as its writer counts. It
	// travels as the header message-version. Zero: none.
	Version int64

	// Payload is the body. Nil is a tombstone on Kafka, else the same as empty.
	Payload []byte

	// ContentType is the media type of Payload.
	ContentType string

	// OccurredAt is when it happened. Zero: the relay tells when it was written.
	OccurredAt time.Time

	// CorrelationID, CausationID and Source default to the conversation, the
	// message and the consumer of the handler in which the event is written.
	CorrelationID, CausationID, Source string

	// Headers are sent along. A handler's trace (traceparent, tracestate) goes
	// on by itself unless it is given here.
	Headers handler.Headers
}

// NewID returns an id for an event: a UUID of version 7, so that ids of later
// events are higher. It is safe for concurrent use.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// check returns an error wrapping [ErrBadEvent] that names everything wrong.
func (e *Event) check() error {
	var errs []error
	for _, f := range [...]struct {
		field, value string
		required     bool
	}{
		{"AggregateType", e.AggregateType, true},
		{"AggregateID", e.AggregateID, true},
		{"Type", e.Type, true},
		{"ContentType", e.ContentType, false},
		{"CorrelationID", e.CorrelationID, false},
		{"CausationID", e.CausationID, false},
		{"Source", e.Source, false},
	} {
		errs = append(errs, checkText(f.field, f.value, f.required))
	}
	for i, h := range e.Headers {
		errs = append(errs, checkText(fmt.Sprintf("name of header %d", i+1), h.Name, true))
	}
	if id, err := uuid.Parse(e.ID); err != nil || id.String() != e.ID {
		errs = append(errs, fmt.Errorf("ID %.64q is no UUID in canonical lower case: leave it empty, or use NewID", e.ID))
	}
	if size := len(e.Payload); size > MaxPayload {
		errs = append(errs, fmt.Errorf("payload has %d bytes, at most %d are allowed: put it elsewhere and send where it is", size, MaxPayload))
	}
	if year := e.OccurredAt.UTC().Year(); year < 0 || year > 9999 {
		errs = append(errs, fmt.Errorf("OccurredAt is in the year %d", year))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrBadEvent, err)
	}
	return nil
}

func checkText(field, value string, required bool) error {
	switch {
	case required && strings.TrimSpace(value) == "":
		return fmt.Errorf("%s is empty", field)
	case len(value) > MaxName:
		return fmt.Errorf("%s has %d bytes, at most %d are allowed (it begins %.32q)", field, len(value), MaxName, value)
	case !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0:
		return fmt.Errorf("%s %.64q is not UTF-8 without NUL bytes", field, value)
	}
	return nil
}

// caused fills what e does not say from the message whose handler writes it.
func (e *Event) caused(by *handler.Cause) {
	if by == nil || by.Message == nil {
		return
	}
	msg := by.Message
	setDefault(&e.CausationID, text(msg.ID))
	setDefault(&e.CorrelationID, text(msg.CorrelationID))
	setDefault(&e.CorrelationID, text(msg.ID)) // it began the conversation
	setDefault(&e.Source, by.Consumer)
	for _, name := range [...]string{handler.HeaderTraceparent, handler.HeaderTracestate} {
		value, ok := msg.Headers.First(name)
		if _, given := e.Headers.First(name); ok && !given {
			e.Headers = append(e.Headers[:len(e.Headers):len(e.Headers)], handler.Header{Name: name, Value: value})
		}
	}
}

// text is an id from outside if it can stand in an event, else nothing: what
// others send must not keep us from writing.
func text(id string) string {
	if checkText("", id, false) != nil {
		return ""
	}
	return id
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}
