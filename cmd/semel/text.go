package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// printable returns s with everything escaped that a terminal would act on or
// not show: what stands in a message comes from outside. Line ends and tabs stay.
func printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n', r == '\t', unicode.IsPrint(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[size:]
	}
	return b.String()
}

// oneLine is printable on one line of at most width characters.
func oneLine(s string, width int) string {
	runes := []rune(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(printable(s)))
	if len(runes) > width {
		runes = append(runes[:width-3], []rune("...")...)
	}
	return string(runes)
}

// isText reports whether bytes are meant to be read: UTF-8 without control
// characters other than line ends and tabs.
func isText(bytes []byte) bool {
	return utf8.Valid(bytes) && !strings.ContainsFunc(string(bytes), func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
	})
}

// dumpBytes is how much is shown of what is no text.
const dumpBytes = 512

// body returns bytes for a person: text as it is, else a hex dump of the beginning.
func body(bytes []byte) string {
	if isText(bytes) {
		return strings.TrimSuffix(printable(string(bytes)), "\n") + "\n"
	}
	if len(bytes) <= dumpBytes {
		return hex.Dump(bytes)
	}
	return hex.Dump(bytes[:dumpBytes]) + fmt.Sprintf("... %d more bytes; -json has them all\n", len(bytes)-dumpBytes)
}

// when is a time for a person.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// cellWidth keeps a row of a table on a line.
const cellWidth = 60

// table aligns its columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, columns ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t.w, strings.Join(columns, "\t"))
	return t
}

func (t table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		if texts[i] = oneLine(fmt.Sprint(cell), cellWidth); texts[i] == "" {
			texts[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(texts, "\t"))
}

func (t table) flush() error { return t.w.Flush() }
