package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/handler"
)

const (
	workFolder = "work"
	doneFolder = "done"

	// hidden is how the name of a file begins that a partner is still writing.
	hidden = "."

	lookEvery = 100 * time.Millisecond

	// maxFile bounds what is read of a file; the engine has the same limit, and a
	// larger one goes to the dead letters.
	maxFile = 16 << 20
)

// folder is a source of messages: the files that partners put into it. Each is taken
// out of the partners' reach under a name that no other has, so that what is
// acknowledged is what was read, also where a partner puts another file under the
// same name meanwhile. What is settled is moved away; what is not is delivered again.
type folder struct {
	path   string
	logger *slog.Logger

	mu     sync.Mutex // guards inHand
	inHand map[string]bool
}

func newFolder(path string, logger *slog.Logger) *folder {
	return &folder{path: path, logger: logger, inHand: make(map[string]bool)}
}

// Run implements [handler.Source].
func (f *folder) Run(ctx context.Context, sink handler.Sink) error {
	var out sync.WaitGroup
	defer out.Wait()
	for _, name := range []string{workFolder, doneFolder} {
		if err := os.MkdirAll(filepath.Join(f.path, name), 0o700); err != nil {
			return fmt.Errorf("make a folder for interchanges: %w", err)
		}
	}
	// What is in work at the start may have been in hand when a process died.
	for found := true; ctx.Err() == nil; found = false {
		if !found {
			if err := f.takeIn(); err != nil {
				return err
			}
		}
		if err := f.deliver(ctx, sink, found, &out); err != nil {
			return err
		}
		if !found && example.Wait(ctx, lookEvery) != nil {
			break
		}
	}
	return nil
}

// takeIn moves what partners have put into the folder to where nobody else writes.
func (f *folder) takeIn() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("look for interchanges: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.Type().IsRegular() || strings.HasPrefix(name, hidden) {
			continue
		}
		to := filepath.Join(f.path, workFolder, name+"."+rand.Text()[:8])
		if err := os.Rename(filepath.Join(f.path, name), to); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("take an interchange: %w", err)
		}
	}
	return nil
}

// deliver delivers what is in work and in nobody's hand.
func (f *folder) deliver(ctx context.Context, sink handler.Sink, found bool, out *sync.WaitGroup) error {
	entries, err := os.ReadDir(filepath.Join(f.path, workFolder))
	if err != nil {
		return fmt.Errorf("look for interchanges: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !f.take(name) {
			continue
		}
		d, err := f.delivery(name, found, out)
		if err == nil {
			out.Add(1)
			if err = sink.Deliver(ctx, d); err != nil {
				out.Done()
			}
		}
		if err != nil {
			f.letGo(name)
			f.logger.DebugContext(ctx, "file is not delivered now", slog.String("file", name), slog.Any("error", err))
		}
	}
	return nil
}

func (f *folder) delivery(name string, found bool, out *sync.WaitGroup) (*handler.Delivery, error) {
	file, err := os.Open(filepath.Join(f.path, workFolder, name))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	msg := &handler.Message{
		Payload: data, Source: strings.TrimSuffix(name, filepath.Ext(name)), ContentType: "application/edifact",
		Origin: handler.Origin{Transport: "folder", Topic: f.path, Redelivered: found},
	}
	msg.CorrelationID, _ = interchangeID(msg) // for people; without one it goes to them
	return &handler.Delivery{
		Message: msg,
		Settled: func() {
			f.moveAway(name)
			out.Done()
		},
		Returned: func(error) {
			f.letGo(name)
			out.Done()
		},
	}, nil
}

// moveAway is the acknowledgement. If we die before it, the file comes again, as a
// copy. If it fails, the file stays in hand until somebody has mended that and
// started the process anew.
func (f *folder) moveAway(name string) {
	if err := os.Rename(filepath.Join(f.path, workFolder, name), filepath.Join(f.path, doneFolder, name)); err != nil {
		f.logger.Error("file is handled and cannot be moved away", slog.String("file", name), slog.Any("error", err))
		return
	}
	f.letGo(name)
}

// take reports that a file is in nobody's hand, and takes it.
func (f *folder) take(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inHand[name] {
		return false
	}
	f.inHand[name] = true
	return true
}

func (f *folder) letGo(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.inHand, name)
}

// holds reports whether a file in the folder is not settled yet.
func holds(path string) (bool, error) {
	for _, folder := range []string{path, filepath.Join(path, workFolder)} { // in the order in which a file is in them
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("look for interchanges: %w", err)
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), hidden) {
				return true, nil
			}
		}
	}
	return false, nil
}

// put is how a partner delivers a file: nobody sees half of it.
func put(path, name string, data []byte) error {
	draft := filepath.Join(path, hidden+name)
	if err := os.WriteFile(draft, data, 0o600); err != nil {
		return fmt.Errorf("deliver an interchange: %w", err)
	}
	if err := os.Rename(draft, filepath.Join(path, name)); err != nil {
		return fmt.Errorf("deliver an interchange: %w", err)
	}
	return nil
}
