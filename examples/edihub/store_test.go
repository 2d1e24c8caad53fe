package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
)

// The store is away for longer than all attempts of a message would last. None is
// spent, and nothing is dead; when it is back the message is transformed.
func TestTransformer_StoreAway(t *testing.T) {
	t.Parallel()
	b := program.Schema(t, tablesSQL)
	dir := t.TempDir()
	left := guard("claim checks", outbox.DirectoryArchive(dir))
	c := claims{store: left, base: fileURL(dir)}
	check, err := c.leave(t.Context(), []byte(invoic))
	require.NoError(t, err)
	payload, err := json.Marshal(received{UNBRef: "778", Raw: check})
	require.NoError(t, err)
	in, err := inbox.New(b.Pool, transforming, transformer{c}.handle, inbox.Config{
		Schema: b.Name, Gates: []*breaker.Breaker{left.breaker},
		QuickDelay: time.Millisecond, Retry: inbox.Retry{Attempts: 3}, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	msg := &handler.Message{ID: "e1", Type: receivedEvent, CorrelationID: "m1", Payload: payload}
	require.NoError(t, os.Rename(dir, dir+".away"))

	for range 5 {
		_, err := in.Process(t.Context(), msg)
		var away *inbox.DependencyError
		require.ErrorAs(t, err, &away)
	}
	require.Zero(t, b.Number(t, `SELECT count(*) FROM semel.dead_letters`))

	require.NoError(t, os.Rename(dir+".away", dir))
	require.Eventually(t, func() bool {
		outcome, err := in.Process(t.Context(), msg)
		return err == nil && outcome == handler.Processed
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, []string{"m1"}, b.Texts(t, `SELECT interchange FROM documents`))
}

// What a store says for good is no outage, and no attempt mends it.
func TestGuard(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"Missing": outbox.ErrNotArchived, "Conflict": outbox.ErrArchiveConflict} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard(name, failing{err})
			for range 10 {
				_, read := g.Read(t.Context(), "a")
				created := g.Create(t.Context(), "a", nil, time.Time{})
				for _, got := range []error{read, created} {
					require.ErrorIs(t, got, err)
					require.True(t, handler.IsPermanent(got))
				}
			}
			require.Equal(t, breaker.Closed, g.breaker.State())
		})
	}
	g := guard("full", failing{errors.New("no space left on device")})
	for range 4 {
		require.False(t, handler.IsPermanent(g.Create(t.Context(), "a", nil, time.Time{})))
	}
	require.Equal(t, breaker.Open, g.breaker.State())
}

// failing is a store that fails.
type failing struct{ err error }

func (f failing) Create(context.Context, string, []byte, time.Time) error { return f.err }
func (f failing) Read(context.Context, string) ([]byte, error)            { return nil, f.err }
