package example_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/example"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := &example.Run{Out: &out}

	r.Table("What came", example.Count(1200, "orders"), example.Count(int64(7), "of them %s", "twice"))

	require.Equal(t, "\nWhat came\n  1200  orders\n     7  of them twice\n", out.String())
}

// A terminal obeys what it is told. It must be told nothing from outside.
func TestShorten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                    "",
		"ten runes.":          "ten runes.",
		"eleven runes":        "eleven ...",
		"two\n\tlines":        "two lines",
		"\x1b[31mred":         "?[31mred",
		"Größe in Öl":         "Größe i...",
		"bad\xff":             "bad\ufffd",
		"a\u202eb":            "a?b",
		"  much    space    ": "much space",
	} {
		require.Equal(t, want, example.Shorten(text, 10), "%q", text)
	}
}
