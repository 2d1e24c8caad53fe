package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/internal/msgrow"
)

// ErrNotFound is returned by [Store.Load] and [Store.LoadSeq] when there is no
// such message in the inbox. Most are not there because they were handled.
var ErrNotFound = errors.New("no such message in the inbox")

// defaultPage is the size of a page.
const defaultPage = 100

// Filter says which messages of the inbox to list. The zero value is all.
type Filter struct {
	// Consumer is a consumer's name. Empty: of every consumer.
	Consumer string

	// State and Type must be equal where they are not empty.
	State State
	Type  string

	// Key must be equal where it is not empty.
	Key []byte

	// Limit is the size of a page. Defaults to 100.
	Limit int

	// After is the seq below the page: the last one of the page before. 0: the
	// first page.
	After int64
}

// List returns a page of the inbox in the order stored, without payloads and
// headers. q is a pool, a connection or a transaction.
//
// What is ready, what is parked and what waits of a key is found quickly; the rest
// is looked for in all that waits.
func (s Store) List(ctx context.Context, q querier, f Filter) ([]Record, error) {
	if f.Limit < 0 || f.After < 0 {
		return nil, fmt.Errorf("list the inbox: limit %d and after %d must not be negative", f.Limit, f.After)
	}
	if f.State != "" && !slices.Contains(states[:], f.State) {
		return nil, fmt.Errorf("list the inbox: there is no state %q, but: %q", f.State, states)
	}
	search := search{state: f.State, kind: f.Type, key: keyHash(f.Key), after: f.After, limit: f.Limit}
	if f.Limit == 0 {
		search.limit = defaultPage
	}
	if f.Consumer != "" {
		search.consumer = pgtype.Int4{Int32: dedup.ConsumerID(f.Consumer), Valid: true}
	}
	records, err := s.search(ctx, q, search)
	if err != nil {
		return nil, fmt.Errorf("list the inbox: %w", err)
	}
	return records, nil
}

// search is what queries/list.sql takes; what is zero matches all.
type search struct {
	consumer      pgtype.Int4
	state         State
	kind          string
	key           pgtype.Int8
	after, before int64
	limit         int
	id            pgtype.UUID
	seq           int64
}

func (s Store) search(ctx context.Context, q querier, w search) ([]Record, error) {
	rows, err := q.Query(ctx, s.tables().rows.list,
		w.consumer, string(w.state), w.kind, w.key, w.after, w.before, w.limit, w.id, w.seq)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, decodeRecord)
}

// Whole is one message of the inbox with all that a person may want to know.
type Whole struct {
	Record

	// Letter is the dead letter that holds the message, if it is parked or
	// replayed.
	Letter *dlq.Letter

	// Before is what comes before it in its key, the first 10 of CountBefore: it is
	// not handled before they are. More than 100,000 are not counted. Where a
	// consumer keeps no order, nothing waits for them.
	Before      []Record
	CountBefore int64
}

const (
	beforeShown   = 10
	beforeCounted = 100_000
)

// Load returns a message by its id, whole. q is a pool, a connection or a
// transaction. The error wraps [ErrNotFound] when the inbox does not have it, and
// [handler.ErrCodec] when the store has a codec that cannot decode the payload.
func (s Store) Load(ctx context.Context, q querier, consumer, id string) (*Whole, error) {
	w, err := s.load(ctx, q, searchFor(consumer, id))
	if err != nil {
		return nil, fmt.Errorf("load message %.255q of consumer %q: %w", printable(id), consumer, err)
	}
	return w, nil
}

// searchFor looks for one message.
func searchFor(consumer, id string) search {
	return search{
		consumer: pgtype.Int4{Int32: dedup.ConsumerID(consumer), Valid: true},
		id:       pgtype.UUID{Bytes: dedup.MessageID(id), Valid: true},
	}
}

// LoadSeq is [Store.Load] by the message's place, for one whose id is no text. It
// reads the whole inbox.
func (s Store) LoadSeq(ctx context.Context, q querier, seq int64) (*Whole, error) {
	w, err := s.load(ctx, q, search{seq: seq})
	if err != nil {
		return nil, fmt.Errorf("load message at seq %d: %w", seq, err)
	}
	return w, nil
}

func (s Store) load(ctx context.Context, q querier, one search) (*Whole, error) {
	one.limit = 1
	found, err := s.search(ctx, q, one)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, ErrNotFound
	}
	w := &Whole{Record: found[0]}
	if err := s.complete(ctx, q, w); err != nil {
		return nil, err
	}
	key := keyHash(w.Message.Key)
	if !key.Valid {
		return w, nil
	}
	of := pgtype.Int4{Int32: w.ConsumerID, Valid: true}
	if w.Before, err = s.search(ctx, q, search{consumer: of, key: key, before: w.Seq, limit: beforeShown}); err != nil {
		return nil, err
	}
	rows, err := q.Query(ctx, s.tables().rows.countBefore, of, key, w.Seq, beforeCounted)
	if err == nil {
		w.CountBefore, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	}
	return w, err
}

// complete loads what a list leaves out, from the row or from its dead letter. A
// letter that is not there is damage, which the list tells.
func (s Store) complete(ctx context.Context, q querier, w *Whole) error {
	if w.DeadLetterID != 0 {
		letter, err := s.tables().letters.WithCodec(s.codec).Load(ctx, q, w.DeadLetterID)
		switch {
		case errors.Is(err, dlq.ErrNotFound):
			return nil
		case err != nil:
			return err
		case letter.ConsumerID == w.ConsumerID:
			w.Letter, w.Message, w.Altered = letter, letter.Message, letter.Altered
			w.Encoded, w.KeyID = letter.Encoded, letter.KeyID
		}
		return nil
	}
	rows, err := q.Query(ctx, s.tables().rows.content, w.ConsumerID, w.MessageID)
	if err != nil {
		return err
	}
	var content msgrow.Row
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(content.Targets()...)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows): // handled meanwhile
		return ErrNotFound
	case err != nil:
		return err
	}
	payload := content.Payload()
	w.Message, w.Encoded, w.KeyID = content.Message(), payload.Encoded, payload.KeyID
	if s.codec != nil && w.Encoded {
		w.Encoded = false
		w.Message.Payload, err = payload.Decode(ctx, s.codec)
	}
	return err
}
