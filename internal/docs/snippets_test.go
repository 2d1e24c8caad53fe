package docs_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var fences = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// blocks returns the fenced blocks of a document that are of one language.
func blocks(text, language string) []string {
	var found []string
	for _, m := range fences.FindAllStringSubmatch(text, -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	return found
}

// Every Go snippet of the README stands in an example that the compiler sees.
func TestReadme_SnippetsAreExamples(t *testing.T) {
	t.Parallel()

	var examples strings.Builder
	for _, file := range goFiles(t, isExample) {
		examples.WriteString(unindented(read(t, file)) + "\n")
	}
	snippets := blocks(read(t, "README.md"), "go")
	require.NotEmpty(t, snippets)
	for _, snippet := range snippets {
		if !strings.Contains(examples.String(), unindented(snippet)) {
			t.Errorf("README.md: this snippet stands in no example_*_test.go and in no program under examples:\n%s", snippet)
		}
	}
}

func isExample(file string) bool {
	name := path.Base(file)
	return strings.HasPrefix(file, "examples/") || strings.HasPrefix(name, "example_") && strings.HasSuffix(name, "_test.go")
}

// unindented is text without indentation and empty lines, each line between
// line ends so that only whole lines match.
func unindented(text string) string {
	out := "\n"
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out += line + "\n"
		}
	}
	return out
}
