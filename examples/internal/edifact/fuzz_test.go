package edifact_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/edifact"
)

// Whatever comes, the parser returns, with an error that has a place in it, or with
// what can be written again and read to be the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(order), false)
	f.Add([]byte("UNA:+,? '"+order), true)
	f.Add([]byte("UNA=*.\\ ~"+strings.NewReplacer("+", "*", ":", "=", "'", "~").Replace(order)), true)
	f.Add([]byte(strings.NewReplacer("UNOC:3", "UNOW:4", "288", "ü,5").Replace(order)), false)
	files, _ := filepath.Glob("../../../../shared/data/edifact/*.edi")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil { //nolint:gosec // the test's
			f.Add(data, true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, lenient bool) {
		in, err := edifact.Parser{Lenient: lenient, MaxBytes: 1 << 16}.Parse(data)
		if err != nil {
			var at *edifact.Error
			require.True(t, errors.As(err, &at))
			require.True(t, at.Offset >= 0 && at.Offset <= len(data), "byte %d of %d", at.Offset, len(data))
			return
		}
		require.NotEmpty(t, in.Messages)

		again, err := edifact.Parse([]byte(write(in)))

		require.NoError(t, err, "%s", write(in))
		require.Equal(t, in.ControlRef, again.ControlRef)
		require.Len(t, again.Messages, len(in.Messages))
		for i, m := range in.Messages {
			require.Len(t, again.Messages[i].Segments, len(m.Segments))
			for j, s := range m.Segments {
				require.Equal(t, s.Tag, again.Messages[i].Segments[j].Tag)
				for e := 0; e <= s.Elements(); e++ {
					require.Equal(t, s.Components(e), again.Messages[i].Segments[j].Components(e))
				}
			}
		}
	})
}

// write writes an interchange with the usual separators, in UTF-8.
func write(in *edifact.Interchange) string {
	var out strings.Builder
	fmt.Fprintf(&out, "UNB+UNOW:3+%s+%s+261130:0915+%s'", edifact.Release(in.Sender), edifact.Release(in.Recipient), edifact.Release(in.ControlRef))
	for _, m := range in.Messages {
		fmt.Fprintf(&out, "UNH+%s+%s'", edifact.Release(m.Ref), edifact.Release(m.Type))
		for _, s := range m.Segments {
			for e := 0; e <= s.Elements(); e++ {
				if e > 0 {
					out.WriteString("+")
				}
				for c, component := range s.Components(e) {
					if c > 0 {
						out.WriteString(":")
					}
					out.WriteString(edifact.Release(component))
				}
			}
			out.WriteString("'")
		}
		fmt.Fprintf(&out, "UNT+%d+%s'", len(m.Segments)+2, edifact.Release(m.Ref))
	}
	fmt.Fprintf(&out, "UNZ+%d+%s'", len(in.Messages), edifact.Release(in.ControlRef))
	return out.String()
}
