package main_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/codectest"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/outbox"
)

// An operator has no key: of an encoded payload the program says that it is there,
// and who could read it.
func TestShow_Encoded(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	ring := codectest.New("2026-11")
	in, err := inbox.New(db.Pool, "shipping", func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.Permanent(errors.New("no such order"))
	}, inbox.Config{Schema: db.Schema, Codec: ring, Ordering: inbox.Strict, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	msg := func(id, key string) *handler.Message {
		return &handler.Message{ID: id, Type: "order.paid", Key: []byte(key), Payload: []byte(`{"id":1}`), Headers: handler.Headers{{Name: "a", Value: []byte("1")}}}
	}
	_, err = in.Store(t.Context(), msg("waits", ""))
	require.NoError(t, err)
	_, err = in.Process(t.Context(), msg("parked", "k"))
	require.NoError(t, err)
	letters, err := dlq.NewStore(db.Schema).List(t.Context(), db.Pool, dlq.Filter{})
	require.NoError(t, err)
	letter := strconv.FormatInt(letters[0].ID, 10)
	event := outbox.Event{ID: outbox.NewID(), AggregateType: "order", AggregateID: "1", Type: "Paid", Payload: []byte(`{"id":1}`), Headers: msg("", "").Headers}
	require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		return outbox.NewWriter(db.Schema).WithCodec(ring).Write(t.Context(), tx, event)
	}))

	for _, args := range [][]string{
		{"inbox", "show", "-consumer", "shipping", "waits"},
		{"inbox", "show", "-consumer", "shipping", "parked"},
		{"dlq", "show", letter},
		{"outbox", "show", event.ID},
	} {
		text := works(t, db, args...)
		require.Contains(t, text, "\nheaders\n  a: 1\n\npayload is encoded: 36 bytes under key id \"2026-11\"\n", args)
		require.NotContains(t, text, handler.HeaderKeyID)
		asJSON := works(t, db, append(args, "-json")...)
		require.Regexp(t, `"payload_encoded": \{\s+"bytes": 36,\s+"key_id": "2026-11"\s+\}`, asJSON, args)
		require.NotContains(t, asJSON, `"payload":`)
	}

	works(t, db, "dlq", "replay", "-yes", letter) // needs no key
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- in.Work(ctx) }()
	require.Eventually(t, func() bool {
		l, err := dlq.NewStore(db.Schema).WithCodec(ring).Load(t.Context(), db.Pool, letters[0].ID)
		return err == nil && l.Attempts == 2 && string(l.Message.Payload) == `{"id":1}`
	}, time.Minute, tick)
	stop()
	require.NoError(t, <-done)
}
