package docs_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each row of a table of docs/choices.md names a test that exists.
func TestChoices(t *testing.T) {
	t.Parallel()

	rows := 0
	text := read(t, "docs/choices.md")
	for line := range strings.Lines(text) {
		switch {
		case !strings.HasPrefix(line, "| "), isHead(line):
			continue
		case strings.HasPrefix(line, "| exactly once "): // it is said to be nothing of ours
			continue
		}
		rows++
		links := testLink.FindAllStringSubmatch(line, -1)
		require.NotEmpty(t, links, "no test backs this row: %s", line)
		for _, link := range links {
			require.Contains(t, read(t, link[2]), "\nfunc "+link[1]+"(t *testing.T) {", "%s is not in %s", link[1], path.Clean(link[2]))
		}
	}
	require.Greater(t, rows, 30)
}

// Each test that a document points to exists.
func TestTests(t *testing.T) {
	t.Parallel()

	for _, document := range documents {
		for _, link := range testLink.FindAllStringSubmatch(read(t, document), -1) {
			require.Contains(t, read(t, link[2]), "\nfunc "+link[1]+"(t *testing.T) {", "%s: %s is not in %s", document, link[1], path.Clean(link[2]))
		}
	}
}

// isHead tells whether a line is the head of a table, by its first cell.
func isHead(line string) bool {
	for _, cell := range [...]string{"word", "one says", "question"} {
		if strings.HasPrefix(line, "| "+cell+" ") {
			return true
		}
	}
	return false
}
