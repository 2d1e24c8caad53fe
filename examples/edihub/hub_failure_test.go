package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
)

// brokenStore is the claim-check store, while err is nil.
type brokenStore struct {
	outbox.ArchiveStore
	err atomic.Pointer[error]
}

func (s *brokenStore) Create(ctx context.Context, name string, data []byte, retainUntil time.Time) error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return s.ArchiveStore.Create(ctx, name, data, retainUntil)
}

// The claim-check store is full, or read-only. Nothing is journaled and
// nothing acknowledged: the partner is told to come again, and is taken when the
// store is well.
func TestHub_StoreFails(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"Full": syscall.ENOSPC, "ReadOnly": syscall.EROFS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			wrapped := fmt.Errorf("write: %w", &fs.PathError{Op: "write", Path: b.claims, Err: err})
			b.store.err.Store(&wrapped)

			w := b.post(request(invoic))

			b.requireComeAgain(t, w)
			b.store.err.Store(nil)
			require.Equal(t, http.StatusOK, b.post(request(invoic)).Code)
			require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.outbox`))
		})
	}
}

// A folder that is gone is not made anew: it may be a disk that is not mounted.
func TestHub_StoreGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, os.Remove(b.claims))

	w := b.post(request(invoic))

	b.requireComeAgain(t, w)
	require.NoError(t, os.Mkdir(b.claims, 0o700))
	require.Equal(t, http.StatusOK, b.post(request(invoic)).Code)
}

func (b *testBundle) requireComeAgain(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.NotContains(t, w.Header().Get("Content-Type"), "report")
	require.NotContains(t, w.Body.String(), b.claims, "a stranger's business it is not")
	b.requireNothing(t)
}

// The row, the event or the MDN cannot be written. None of them is, and no
// MDN leaves; the message waits in the inbox, is journaled from there, and whoever
// asks again has its MDN.
func TestHub_JournalFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `ALTER TABLE semel.outbox RENAME TO outbox_away`) // the event comes after the row

	w := b.post(request(invoic))

	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Zero(t, b.Number(t, `SELECT count(*) FROM interchanges`))

	b.Exec(t, `ALTER TABLE semel.outbox_away RENAME TO outbox`)
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- b.hub.inbox.Work(ctx) }()
	require.Eventually(t, func() bool { return b.post(request(invoic)).Code == http.StatusOK }, time.Minute, 20*time.Millisecond)
	stop()
	require.NoError(t, <-worked)
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM interchanges`))
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.outbox`))
}
