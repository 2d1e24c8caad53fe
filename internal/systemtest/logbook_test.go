package systemtest_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// logbook keeps what is logged at Warn and above. It is safe for concurrent
// use.
type logbook struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Write implements [io.Writer].
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// has reports whether one line holds all of the texts.
func (l *logbook) has(texts ...string) bool {
	for line := range strings.Lines(l.String()) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			return true
		}
	}
	return false
}
