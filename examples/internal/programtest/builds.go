package programtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Builds are the built programs of a package, in a folder that outlives the
// test that makes it. The zero value is ready to use, by several tests at once.
type Builds struct {
	mu  sync.Mutex // guards dir, and holds while one is built
	dir string
}

// Build builds the program in the working directory, once for each set of tags.
func (b *Builds) Build(t *testing.T, tags string) (binary string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "semel-example-test-") //nolint:usetesting // it outlives the test
		require.NoError(t, err)
		b.dir = dir
	}
	binary = filepath.Join(b.dir, "program-"+tags)
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		out, err := exec.Command("go", "build", "-tags", tags, "-o", binary, ".").CombinedOutput() //nolint:gosec // the test's
		require.NoError(t, err, "%s", out)
	}
	return binary
}

// Remove removes what was built. Call it after the last test.
func (b *Builds) Remove() { _ = os.RemoveAll(b.dir) }
