package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is where the repository begins, seen from here.
const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}

// goFiles returns the Go files of the repository that match, by their path from
// its root.
func goFiles(t *testing.T, match func(path string) bool) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err == nil && !d.IsDir() && strings.HasSuffix(rel, ".go") && match(filepath.ToSlash(rel)) {
			found = append(found, filepath.ToSlash(rel))
		}
		return err
	})
	require.NoError(t, err)
	slices.Sort(found)
	return found
}
