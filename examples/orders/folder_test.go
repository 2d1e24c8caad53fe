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
	return t.TempDir()
}

// A file is kept until it is settled, comes again if it was returned, and is moved away
// only then. One that is still written is nobody's.
func TestFolder(t *testing.T) {
	t.Parallel()
	path, s := newPath(t), &sink{}
	require.NoError(t, put(path, "1.edi", []byte(order1)))
	require.NoError(t, os.WriteFile(filepath.Join(path, hidden+"2.edi"), []byte("UNB+"), 0o600))
	stop := runFolder(t, path, s)

	first := s.await(t, 1)[0]
	require.Equal(t, []any{order1, "1.edi", "4012345000009/4399902000005/R1", false},
		[]any{string(first.Message.Payload), first.Message.Source, first.Message.CorrelationID, first.Message.Origin.Redelivered})
	first.Returned(nil)
	again := s.await(t, 2)[1]
	require.Equal(t, []string{order1}, contents(t, path, workFolder))
	again.Settled()
	require.Empty(t, contents(t, path, workFolder))
	stop()

	require.Equal(t, []string{order1}, contents(t, path, doneFolder))
	require.FileExists(t, filepath.Join(path, hidden+"2.edi"))
}

// A partner puts another file under the name of one that is in hand: what is
// acknowledged is what was read, and the other one is delivered too.
func TestFolder_AnotherOfTheName(t *testing.T) {
	t.Parallel()
	path, s := newPath(t), &sink{}
	require.NoError(t, put(path, "1.edi", []byte(order1)))
	stop := runFolder(t, path, s)
	first := s.await(t, 1)[0]
	require.NoError(t, put(path, "1.edi", []byte("another one")))
	second := s.await(t, 2)[1]
	first.Settled()
	require.Equal(t, []string{order1}, contents(t, path, doneFolder))
	require.Equal(t, "another one", string(second.Message.Payload))
	second.Settled()
	stop()
	require.ElementsMatch(t, []string{order1, "another one"}, contents(t, path, doneFolder))
}

// What was in hand when a process died is delivered by the next one, and said to be.
func TestFolder_LeftInHand(t *testing.T) {
	t.Parallel()
	path, s := newPath(t), &sink{}
	require.NoError(t, os.Mkdir(filepath.Join(path, workFolder), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(path, workFolder, "1.edi.ABCDEFGH"), []byte(order1), 0o600))
	stop := runFolder(t, path, s)
	d := s.await(t, 1)[0]
	require.Equal(t, []any{"1.edi", true}, []any{d.Message.Source, d.Message.Origin.Redelivered})
	d.Settled()
	stop()
}

// contents are those of the files in a folder.
func contents(t *testing.T, path, folder string) (all []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(path, folder, "*"))
	require.NoError(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name) //nolint:gosec // the test's
		require.NoError(t, err)
		all = append(all, string(data))
	}
	return all
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
	require.Empty(t, contents(t, path, workFolder))

	s.refuse = true
	require.NoError(t, put(path, "2.edi", []byte(order1)))
	stop = runFolder(t, path, s)
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refused > 1
	}, time.Minute, 10*time.Millisecond)
	stop()
	require.Equal(t, []string{order1}, contents(t, path, workFolder))
}

const order1 = "UNB+UNOA:3+4012345000009:14+4399902000005:14+261130:0915+R1'"
