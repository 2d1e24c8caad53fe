package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

func dlqShow(ctx context.Context, c *call) error {
	c.needsDatabase()
	asJSON := c.flags.Bool("json", false, "print JSON; bytes that are no text as base64")
	arguments, err := c.parse()
	if err != nil {
		return err
	}
	if len(arguments) != 1 {
		return c.usage("%s needs one argument, the id of a dead letter, but got %d", c.path, len(arguments))
	}
	id, err := c.letterID(arguments[0])
	if err != nil {
		return err
	}
	return c.withLetters(ctx, func(conn *pgx.Conn, store dlq.Store) error {
		l, err := store.Load(ctx, conn, id)
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(c.stdout, whole(l))
		}
		printLetter(c.stdout, l)
		return nil
	})
}

// printLetter shows a dead letter to a person.
func printLetter(w io.Writer, l *dlq.Letter) {
	field := fields(w)
	field("dead letter", strconv.FormatInt(l.ID, 10))
	field("consumer", consumerName(l))
	field("reason", string(l.Reason))
	field("state", string(l.State))
	field("outcome", ended(l.Outcome))
	field("owner", l.Owner)
	field("copies", strconv.FormatInt(l.Count, 10))
	field("attempts", strconv.Itoa(l.Attempts))
	field("first failed", when(l.FirstFailedAt))
	field("last failed", when(l.LastFailedAt))
	if !l.ResolvedAt.IsZero() {
		field("settled", when(l.ResolvedAt))
	}
	field("decided by", l.DecidedBy)
	if !l.RedactedAt.IsZero() {
		field("redacted", when(l.RedactedAt))
	}
	field("altered", l.Altered)

	fmt.Fprintln(w)
	printMessage(w, l.Message, uuidText(l.MessageID))
	printErrors(w, l.Errors)
	if !l.RedactedAt.IsZero() {
		fmt.Fprint(w, "\npayload and header values were deleted\n")
		return
	}
	content{l.Message.Headers, l.Message.Payload, l.Encoded, l.KeyID}.print(w)
}

// ended says how a message ended that was handled after all, "" if nobody knows.
func ended(o handler.Outcome) string {
	switch o {
	case 0:
		return ""
	case handler.Superseded:
		return o.String() + ": something newer had been handled, so this had no effect"
	case handler.Skipped:
		return o.String() + ": its handler did not want it, so this had no effect"
	}
	return o.String()
}

// printMessage shows what a message has besides headers and payload.
func printMessage(w io.Writer, m *handler.Message, claimedAs string) {
	o := &m.Origin
	field := fields(w)
	field("message", m.ID)
	field("claimed as", claimedAs)
	field("type", m.Type)
	field("key", string(m.Key))
	if m.Version != 0 {
		field("version", strconv.FormatInt(m.Version, 10))
	}
	field("correlation id", m.CorrelationID)
	field("causation id", m.CausationID)
	field("source", m.Source)
	field("content type", m.ContentType)
	if !m.OccurredAt.IsZero() {
		field("occurred", when(m.OccurredAt))
	}
	field("from", strings.TrimSpace(o.Transport+" "+o.Topic))
	if o.Position != "" {
		field("position", fmt.Sprintf("%s (partition %d, offset %d)", o.Position, o.Partition, o.Offset))
	}
	field("exchange", o.Exchange)
	field("routing key", o.RoutingKey)
	if !o.Time.IsZero() {
		field("broker time", when(o.Time))
	}
}

// printErrors shows the chain of errors of the last attempt.
func printErrors(w io.Writer, chain []string) {
	if len(chain) == 0 {
		return
	}
	fmt.Fprint(w, "\nerrors, outermost first\n")
	for _, text := range chain {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(printable(text), "\n", "\n    "))
	}
}

// fields returns what writes a line for each value that is not empty.
func fields(w io.Writer) func(name, value string) {
	return func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-15s %s\n", name, oneLine(value, lineWidth))
		}
	}
}

// lineWidth bounds what stands on one line; -json has all of it.
const lineWidth = 500

func uuidText(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
