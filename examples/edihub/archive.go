package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// keptYears is for how long the law wants invoices kept.
const keptYears = 10

// manifest stands beside each archived interchange and says what it is.
type manifest struct {
	Interchange string    `json:"interchange"`
	Event       string    `json:"event"`
	UNBRef      string    `json:"unbRef"`
	Sender      string    `json:"sender"`
	Recipient   string    `json:"recipient"`
	ReceivedAt  time.Time `json:"receivedAt"`
	RetainUntil time.Time `json:"retainUntil"`
	Object      string    `json:"object"`
	Bytes       int       `json:"bytes"`
	SHA256      string    `json:"sha256"`
}

// archive is the consumer that keeps an immutable copy of each interchange. Both
// objects are made of the event alone, so whoever repeats it after a crash writes
// the same bytes, which the store takes for done.
type archive struct {
	claims claims
	store  outbox.ArchiveStore
}

// copy is what the consumer does before its transaction begins: nothing in it
// needs the database, and a slow store holds no connection. It keeps the manifest
// for note.
func (a archive) copy(ctx context.Context, msg *handler.Message) error {
	m, raw, err := a.describe(ctx, msg)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := a.store.Create(ctx, m.Object, raw, m.RetainUntil); err != nil {
		return err
	}
	if err := a.store.Create(ctx, m.Object+".manifest.json", append(text, '\n'), m.RetainUntil); err != nil {
		return err
	}
	handler.CauseFrom(ctx).Keep(m)
	return verify(ctx, a.store, m.Object, m.SHA256)
}

// note is its handler.
func (archive) note(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
	m, ok := handler.CauseFrom(ctx).Kept().(*manifest)
	if !ok {
		return errors.New("note the copy in the archive: none was made")
	}
	_, err := tx.Exec(ctx, `INSERT INTO archived (interchange, event, object, sha256, retain_until) VALUES ($1, $2, $3, $4, $5)`,
		m.Interchange, m.Event, m.Object, m.SHA256, m.RetainUntil)
	return err
}

func (a archive) describe(ctx context.Context, msg *handler.Message) (*manifest, []byte, error) {
	var e received
	if err := json.Unmarshal(msg.Payload, &e); err != nil {
		return nil, nil, handler.Permanent(fmt.Errorf("read event %q: %w", msg.ID, err))
	}
	if msg.OccurredAt.IsZero() {
		return nil, nil, handler.Permanent(fmt.Errorf("event %q does not say when it occurred: nobody knows for how long its copy is to be kept", msg.ID))
	}
	raw, err := a.claims.redeem(ctx, e.Raw)
	if err != nil {
		return nil, nil, err
	}
	at := msg.OccurredAt.UTC()
	return &manifest{
		Interchange: msg.CorrelationID, Event: msg.ID,
		UNBRef: e.UNBRef, Sender: e.Sender, Recipient: e.Recipient,
		ReceivedAt: at, RetainUntil: at.AddDate(keptYears, 0, 0),
		Object: at.Format("2006/01/02/") + msg.ID + ".edi", Bytes: len(raw), SHA256: hashOf(raw),
	}, raw, nil
}

// verify reads an object back.
func verify(ctx context.Context, store outbox.ArchiveStore, object, sha256 string) error {
	kept, err := store.Read(ctx, object)
	if err == nil && hashOf(kept) != sha256 {
		err = errors.New("it is not what was written")
	}
	if err != nil {
		return fmt.Errorf("verify archived object %q: %w", object, err)
	}
	return nil
}
