package dlq

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/handler"
)

// Names of the headers with which a dead letter goes to a broker. Numbers are
// decimal, times RFC 3339 in UTC.
const (
	HeaderOriginalID         = "semel-original-id"
	HeaderOriginalType       = "semel-original-type"
	HeaderOriginalKey        = "semel-original-key"
	HeaderOriginalTopic      = "semel-original-topic"
	HeaderOriginalPartition  = "semel-original-partition"
	HeaderOriginalOffset     = "semel-original-offset"
	HeaderOriginalQueue      = "semel-original-queue"
	HeaderOriginalExchange   = "semel-original-exchange"
	HeaderOriginalRoutingKey = "semel-original-routing-key"
	HeaderConsumer           = "semel-consumer"
	HeaderReason             = "semel-reason"
	HeaderError              = "semel-error"
	HeaderAttempts           = "semel-attempts"
	HeaderFirstFailure       = "semel-first-failure"
	HeaderLastFailure        = "semel-last-failure"
	HeaderAltered            = "semel-altered"
)

// headerOriginal begins the names of what says where a message came from.
const headerOriginal = "semel-original-"

// Bounds of what is written, so that a record fits wherever its message did. The
// last two leave room for what a publisher adds.
const (
	maxHeaderValue = 2 << 10           // of any but the error
	maxHeaders     = 32 << 10          // of ours together
	maxFrame       = 128<<10 - 8<<10   // of all: AMQP has them in one frame
	maxRecord      = 1_000_000 - 8<<10 // of all with key and payload: what Kafka's clients and brokers take unless told otherwise
	minHeaderError = 256               // of the error, where there is no room at all
	headerOverhead = 1 + 4 + 1         // lengths and type
)

// WriteHeaders returns the headers with which the message goes to a broker as a
// dead letter: its own as they came, where it came from, and how it died. Those
// of more are written with ours.
//
// Where a message came from and when it first failed is written once: if it has
// died before and comes from a dead letter topic, it keeps what it says of that.
// All else of ours is replaced. The error text is cut so that the record fits;
// any other value of ours above 2 KB is cut too, and says so.
func (l *Letter) WriteHeaders(more ...handler.Header) handler.Headers {
	own := l.Message.Headers
	diedBefore := slices.ContainsFunc(own, func(h handler.Header) bool {
		return h.Name == HeaderReason || strings.HasPrefix(h.Name, headerOriginal)
	})
	_, failedBefore := own.First(HeaderFirstFailure)

	var ours handler.Headers
	for _, h := range append(l.death(), more...) {
		if diedBefore && strings.HasPrefix(h.Name, headerOriginal) || failedBefore && h.Name == HeaderFirstFailure {
			continue
		}
		h.Value = []byte(shorten(string(h.Value), maxHeaderValue))
		ours = append(ours, h)
	}
	headers := make(handler.Headers, 0, len(own)+len(ours)+1)
	for _, h := range own {
		switch h.Name {
		case HeaderConsumer, HeaderReason, HeaderError, HeaderAttempts, HeaderLastFailure, HeaderAltered: // of an earlier death
		default:
			headers = append(headers, h)
		}
	}
	headers = append(headers, ours...)
	room := min(maxHeaders-size(ours), maxFrame-size(headers), maxRecord-size(headers)-len(l.Message.Key)-len(l.Message.Payload))
	told := shorten(l.told(), max(room-headerOverhead-len(HeaderError), minHeaderError))
	return append(headers, handler.Header{Name: HeaderError, Value: []byte(told)})
}

// death is where the message came from and how it died, but for the error.
func (l *Letter) death() handler.Headers {
	o := &l.Message.Origin
	var h handler.Headers
	add := func(name, value string) { h = append(h, handler.Header{Name: name, Value: []byte(value)}) }
	given := func(name, value string) {
		if value != "" {
			add(name, value)
		}
	}
	given(HeaderOriginalID, l.Message.ID)
	if o.Exchange != "" || o.RoutingKey != "" { // one of them is there where there are such things
		add(HeaderOriginalQueue, o.Topic)
		add(HeaderOriginalExchange, o.Exchange)
		add(HeaderOriginalRoutingKey, o.RoutingKey)
	} else {
		given(HeaderOriginalTopic, o.Topic)
		if o.Position != "" {
			add(HeaderOriginalPartition, strconv.FormatInt(int64(o.Partition), 10))
			add(HeaderOriginalOffset, strconv.FormatInt(o.Offset, 10))
		}
	}
	given(HeaderConsumer, l.Consumer)
	add(HeaderReason, string(l.Reason))
	add(HeaderAttempts, strconv.Itoa(l.Attempts))
	given(HeaderFirstFailure, timeText(l.FirstFailedAt))
	given(HeaderLastFailure, timeText(l.LastFailedAt))
	return h
}

// told is the chain of errors as one text: each of them that the text does not
// hold already, a line each.
func (l *Letter) told() string {
	var told string
	for _, text := range l.Errors {
		switch {
		case told == "":
			told = text
		case !strings.Contains(told, text):
			told += "\n" + text
		}
	}
	return strings.ToValidUTF8(told, "�")
}

func size(headers handler.Headers) int {
	n := 0
	for i := range headers {
		n += headerOverhead + len(headers[i].Name) + len(headers[i].Value)
	}
	return n
}

// timeText keeps what the database keeps, so that a letter read back says the same.
func timeText(t time.Time) string {
	t = t.UTC().Truncate(time.Microsecond)
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 { // RFC 3339 has no other years
		return ""
	}
	return t.Format(time.RFC3339Nano)
}
