package msgrow

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// storable reports whether PostgreSQL's text can hold s.
func storable(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// escape writes what text cannot hold as \xNN, and a backslash as two, so that
// [unescape] gives back s.
func escape(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == 0, r == utf8.RuneError && size == 1:
			const hex = "0123456789abcdef"
			b.WriteString(`\x`)
			b.WriteByte(hex[s[0]>>4])
			b.WriteByte(hex[s[0]&15])
		case r == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// unescape undoes [escape]. What escape cannot have written stays as it is.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		rest := s[i:]
		if strings.HasPrefix(rest, `\\`) {
			b.WriteByte('\\')
			i++
			continue
		}
		if strings.HasPrefix(rest, `\x`) && len(rest) >= 4 {
			if v, err := strconv.ParseUint(rest[2:4], 16, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
