package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/inbox"
)

func inboxShow(ctx context.Context, c *call) error {
	c.needsDatabase()
	consumer := c.flags.String("consumer", "", "`name` of the consumer that the message waits for")
	seq := c.flags.Int64("seq", 0, "the `place` of the message, instead of consumer and id")
	asJSON := c.flags.Bool("json", false, "print JSON; bytes that are no text as base64")
	arguments, err := c.parse()
	if err != nil {
		return err
	}
	switch {
	case *seq < 0:
		return c.usage("-seq must be at least 1")
	case *seq > 0 && (len(arguments) > 0 || *consumer != ""):
		return c.usage("name a message by its id and -consumer or by -seq, not both")
	case *seq == 0 && (len(arguments) != 1 || *consumer == ""):
		return c.usage("%s needs -consumer and one argument, the id of a message, or -seq: see \"semel inbox list\"", c.path)
	}
	return c.withInbox(ctx, *consumer, func(conn *pgx.Conn, store inbox.Store) error {
		var w *inbox.Whole
		if *seq > 0 {
			w, err = store.LoadSeq(ctx, conn, *seq)
		} else {
			w, err = store.Load(ctx, conn, *consumer, arguments[0])
		}
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(c.stdout, wholeStored(w))
		}
		return c.printWholeStored(w)
	})
}

// printWholeStored shows a message of the inbox to a person.
func (c *call) printWholeStored(w *inbox.Whole) error {
	out := c.stdout
	field := fields(out)
	field("seq", strconv.FormatInt(w.Seq, 10))
	field("consumer", nameOr(w.Consumer, w.ConsumerID))
	field("state", string(w.State))
	for _, at := range storedTimes(&w.Record) {
		if !at.time.IsZero() {
			field(at.words, when(at.time))
		}
	}
	field("attempts", strconv.Itoa(w.Attempts))
	if w.DeadLetterID != 0 {
		field("dead letter", strconv.FormatInt(w.DeadLetterID, 10))
	}
	field("damage", strings.Join(w.Damage, "; "))
	field("altered", w.Altered)
	fmt.Fprintln(out)
	printMessage(out, w.Message, uuidText(w.MessageID))
	printErrors(out, w.Errors)
	if w.Letter != nil {
		fmt.Fprintf(out, "\nits dead letter %d\n", w.Letter.ID)
		field("  reason", string(w.Letter.Reason))
		field("  state", string(w.Letter.State))
		field("  owner", w.Letter.Owner)
		field("  decided by", w.Letter.DecidedBy)
		if w.State != inbox.StateParked { // else they stand above
			printErrors(out, w.Letter.Errors)
		}
	}
	if err := c.printBefore(out, w); err != nil {
		return err
	}
	if w.Letter != nil && !w.Letter.RedactedAt.IsZero() {
		fmt.Fprint(out, "\npayload and header values were deleted\n")
		return nil
	}
	content{w.Message.Headers, w.Message.Payload, w.Encoded, w.KeyID}.print(out)
	return nil
}

// printBefore shows what a message waits for in its key.
func (c *call) printBefore(out io.Writer, w *inbox.Whole) error {
	if w.CountBefore == 0 {
		return nil
	}
	fmt.Fprintf(out, "\nbefore it in its key: %d\n", w.CountBefore)
	return c.printStored(w.Before)
}

func inboxRunNow(ctx context.Context, c *call) error {
	c.needsDatabase()
	consumer := c.flags.String("consumer", "", "`name` of the consumer that the messages wait for")
	confirmed := c.confirmFlags("messages")
	arguments, err := c.parse()
	if err != nil {
		return err
	}
	if len(arguments) == 0 || *consumer == "" {
		return c.usage("%s needs -consumer and the ids of messages: see \"semel inbox list -state delayed\"", c.path)
	}
	var ids []string
	for _, id := range arguments { // each counts once
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	d := decision[string]{
		things: "messages", will: "makes ready", did: "made ready", chosen: ids, why: make(map[string]string),
		unchanged: "it waits for nothing: a process that works the inbox takes it",
	}
	return c.withInbox(ctx, *consumer, func(conn *pgx.Conn, store inbox.Store) error {
		var records []inbox.Record
		for _, id := range ids {
			w, err := store.Load(ctx, conn, *consumer, id)
			if err != nil {
				return err
			}
			records = append(records, w.Record)
		}
		d.objects = storedObjects(records)
		d.print = func() error { return c.printStored(records) }
		results := make(map[string]inbox.RunNowResult)
		d.do = func(ids []string) (changed []string, err error) {
			done, err := store.RunNow(ctx, conn, *consumer, ids...)
			for _, r := range done {
				results[r.ID] = r
				if r.Changed {
					changed = append(changed, r.ID)
				} else {
					d.why[r.ID] = whyNotNow(&r)
				}
			}
			return changed, err
		}
		d.state = func(id string) (string, error) {
			if results[id].State == "" {
				return gone, nil
			}
			return string(results[id].State), nil
		}
		return decide(c, confirmed, d)
	})
}

// whyNotNow says why a message could not be made ready.
func whyNotNow(r *inbox.RunNowResult) string {
	switch {
	case r.State == "":
		return "it was handled meanwhile"
	case r.State == inbox.StateTaken:
		return "a process has it"
	case r.State == inbox.StateParked:
		return fmt.Sprintf("it is dead: semel dlq replay %d, or discard", r.DeadLetterID)
	case r.State == inbox.StateBehind && r.First != nil:
		return fmt.Sprintf("it waits for message %s of its key, at seq %d, which is %s", r.First.Message.ID, r.First.Seq, r.First.State)
	case r.State == inbox.StateBehind:
		return "it waits for others of its key"
	}
	return ""
}
