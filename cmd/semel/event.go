package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
)

func outboxShow(ctx context.Context, c *call) error {
	c.needsDatabase()
	asJSON := c.flags.Bool("json", false, "print JSON; bytes that are no text as base64")
	arguments, err := c.parse()
	if err != nil {
		return err
	}
	if len(arguments) != 1 {
		return c.usage("%s needs one argument, the id of an event, but got %d", c.path, len(arguments))
	}
	if err := c.checkEventIDs(arguments); err != nil {
		return err
	}
	return c.withOutbox(ctx, func(conn *pgx.Conn, store outbox.Store) error {
		r, err := store.Load(ctx, conn, arguments[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(c.stdout, wholeEvent(r))
		}
		printEvent(c.stdout, r)
		return nil
	})
}

func (c *call) checkEventIDs(ids []string) error {
	for _, id := range ids {
		if _, err := uuid.Parse(id); err != nil {
			return c.usage("%q is no id of an event: it is a UUID, see \"semel outbox list\"", id)
		}
	}
	return nil
}

// printEvent shows an event to a person.
func printEvent(w io.Writer, r *outbox.Record) {
	field := fields(w)
	field("event", r.ID)
	field("state", string(r.State))
	field("written", when(r.CreatedAt))
	for _, at := range eventTimes(r) {
		if !at.time.IsZero() {
			field(at.words, when(at.time))
		}
	}
	if r.Attempts > 0 {
		field("failed attempts", strconv.Itoa(r.Attempts))
	}
	field("place", fmt.Sprintf("%d in shard %d", r.Seq, r.Shard))

	fmt.Fprintln(w)
	field("aggregate", r.AggregateType+" "+r.AggregateID)
	field("type", r.Type)
	if r.Version != 0 {
		field("version", strconv.FormatInt(r.Version, 10))
	}
	field("correlation id", r.CorrelationID)
	field("causation id", r.CausationID)
	field("source", r.Source)
	field("content type", r.ContentType)
	if !r.OccurredAt.IsZero() {
		field("occurred", when(r.OccurredAt))
	}
	if r.LastError != "" {
		fmt.Fprintf(w, "\nlast error\n  %s\n", strings.ReplaceAll(printable(r.LastError), "\n", "\n    "))
	}
	content{r.Headers, r.Payload, r.Encoded, r.KeyID}.print(w)
}
