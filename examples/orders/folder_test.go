package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// sink keeps what it is given, unless it refuses it.
type sink struct {
	mu      sync.Mutex // guards what follows
	refuse  bool
	refused int
	got     []*handler.Delivery
}

func (s *sink) Deliver(_ context.Context, d *handler.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse {
		s.refused++
		return context.Canceled
	}
	s.got = append(s.got, d)
	return nil
}

func (s *sink) deliveries() []*handler.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*handler.Delivery(nil), s.got...)
}

// runFolder runs the source of a folder of a test's own.
func runFolder(t *testing.T, path string, s *sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- newFolder(path, slog.New(slog.DiscardHandler)).Run(ctx, s) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func (s *sink) await(t *testing.T, n int) []*handler.Delivery {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.deliveries()) >= n }, time.Minute, 10*time.Millisecond)
	require.Len(t, s.deliveries(), n)
	return s.deliveries()
}

func newPath(t *testing.T) string {
	t.Helper()
	path := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(path, doneFolder), 0o700))
	return path
}

// A file stays until it is settled, comes again if it was returned, and is moved away
// only then. One that is still written is nobody's.
func TestFolder(t *testing.T) {
	t.Parallel()
	path, s := newPath(t), &sink{}
	require.NoError(t, put(path, "1.edi", []byte(order1)))
	require.NoError(t, os.WriteFile(filepath.Join(path, hidden+"2.edi"), []byte("UNB+"), 0o600))
	stop := runFolder(t, path, s)

	first := s.await(t, 1)[0]
	require.Equal(t, []any{order1, "1.edi", "4012345000009/R1", true},
		[]any{string(first.Message.Payload), first.Message.Source, first.Message.CorrelationID, first.Message.Origin.Redelivered})
	first.Returned(nil)
	again := s.await(t, 2)[1]
	require.FileExists(t, filepath.Join(path, "1.edi"))
	require.False(t, again.Message.Origin.Redelivered)
	again.Settled()
	require.NoFileExists(t, filepath.Join(path, "1.edi"))

	require.NoError(t, put(path, "1.edi", []byte("another one of this name")))
	s.await(t, 3)[2].Settled()
	stop()

	kept, err := filepath.Glob(filepath.Join(path, doneFolder, "1.edi.*"))
	require.NoError(t, err)
	require.Len(t, kept, 2)
	require.FileExists(t, filepath.Join(path, hidden+"2.edi"))
}

// What the engine refuses stays, and Run waits for what it took.
func TestFolder_Drains(t *testing.T) {
	t.Parallel()
	path, s := newPath(t), &sink{}
	require.NoError(t, put(path, "1.edi", []byte(order1)))
	stop := runFolder(t, path, s)
	d := s.await(t, 1)[0]

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	select {
	case <-ended:
		require.Fail(t, "it did not wait")
	case <-time.After(3 * lookEvery): // can only pass too early, never fail too early
	}
	d.Settled()
	<-ended
	require.NoFileExists(t, filepath.Join(path, "1.edi"))

	s.refuse = true
	require.NoError(t, put(path, "2.edi", []byte(order1)))
	stop = runFolder(t, path, s)
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refused > 1
	}, time.Minute, 10*time.Millisecond)
	stop()
	require.FileExists(t, filepath.Join(path, "2.edi"))
}

const order1 = "UNB+UNOA:3+4012345000009:14+4399902000005:14+261130:0915+R1'"
