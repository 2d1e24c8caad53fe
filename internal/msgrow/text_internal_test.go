package msgrow

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever bytes a broker brings, they can be stored as text and come back.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00", `\x00`, `\`, `\\x`, "é\xe9", "\xff\\\x00", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		stored := escape(s)

		require.True(t, storable(stored))
		require.Equal(t, s, unescape(stored))
	})
}

// A row may have been written by hand.
func FuzzUnescape(f *testing.F) {
	f.Add(`\x`)
	f.Add(`\xzz`)
	f.Fuzz(func(_ *testing.T, s string) { unescape(s) })
}
