package docs_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	testLink = regexp.MustCompile(`\[(Test\w+)\]\(\.\./([^)]+)\)`)
	backed   = regexp.MustCompile("`([^`]+)`")
)

// Each row of docs/failures.md names a test that exists, and what it says one
// will see is in the program as it stands there.
func TestFailures(t *testing.T) {
	t.Parallel()

	var program strings.Builder
	for _, file := range goFiles(t, func(path string) bool { return !strings.HasSuffix(path, "_test.go") }) {
		program.WriteString(read(t, file))
	}
	rows := 0
	for line := range strings.Lines(read(t, "docs/failures.md")) {
		cells := strings.Split(strings.Trim(line, "|\n"), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == " what happened" {
			continue
		}
		rows++
		require.Len(t, cells, 4, line)
		links := testLink.FindAllStringSubmatch(cells[3], -1)
		require.NotEmpty(t, links, "no test holds this row: %s", line)
		for _, link := range links {
			require.Contains(t, read(t, link[2]), "\nfunc "+link[1]+"(t *testing.T) {", "%s is not in %s", link[1], path.Clean(link[2]))
		}
		for _, text := range backed.FindAllStringSubmatch(cells[1], -1) {
			require.Contains(t, program.String(), text[1], "no program says this: %s", line)
		}
	}
	require.Greater(t, rows, 20)
}
