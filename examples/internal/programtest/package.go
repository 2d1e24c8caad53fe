package programtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/database"
)

// Package is what the tests of an example share: its built programs, and a database.
// The zero value is ready to use, by several tests at once.
type Package struct {
	mu     sync.Mutex // guards what follows, and holds while one is built or started
	dir    string     // outlives the test that makes it
	server *database.Server
}

// Main is the TestMain of an example. It lets the test binary be the supervisor of
// its embedded PostgreSQL.
func (p *Package) Main(m *testing.M) {
	if database.Supervise() {
		return
	}
	status := m.Run()
	if p.server != nil {
		p.server.Close()
	}
	_ = os.RemoveAll(p.dir)
	os.Exit(status)
}

// Build builds the program in the working directory, once for each set of tags.
func (p *Package) Build(t *testing.T, tags string) (binary string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		dir, err := os.MkdirTemp("", "semel-example-test-") //nolint:usetesting // it outlives the test
		require.NoError(t, err)
		p.dir = dir
	}
	binary = filepath.Join(p.dir, "program-"+tags)
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		out, err := exec.Command("go", "build", "-tags", tags, "-o", binary, ".").CombinedOutput() //nolint:gosec // the test's
		require.NoError(t, err, "%s", out)
	}
	return binary
}
