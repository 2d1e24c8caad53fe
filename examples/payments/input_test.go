package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func TestInput_Lines(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		line    string
		id      string
		kind    string
		payload string
		wrong   string // of a malformed line; its payload is the line
	}{
		{name: "Object", line: `{"id":"e","type":"t","body":{"a": 1}}`, id: "e", kind: "t", payload: `{"a": 1}`},
		{name: "Text", line: `{"id":"e","type":"t","body":"a\nb"}`, id: "e", kind: "t", payload: `"a\nb"`},
		{name: "Null", line: `{"id":"e","type":"t","body":null}`, id: "e", kind: "t", payload: "null"},
		{name: "NoBody", line: `{"id":"e","type":"t"}`, id: "e", kind: "t"},
		{name: "NoID", line: `{"type":"t","body":1}`, kind: "t", payload: "1"},
		{name: "NoType", line: `{"id":"e","body":[]}`, id: "e", payload: "[]"},
		{name: "CarriageReturn", line: "{\"id\":\"e\",\"type\":\"t\",\"body\":1}\r", id: "e", kind: "t", payload: "1"},
		{name: "BOM", line: "\ufeff" + `{"id":"e","type":"t","body":1}`, id: "e", kind: "t", payload: "1"},
		{name: "BrokenOff", line: `{"id":"e","type":`, wrong: "it is not JSON at byte 17 of 17"},
		{name: "Two", line: `{"id":"e"}{"id":"f"}`, wrong: "it is not JSON at byte 11 of 20"},
		{name: "List", line: `[1]`, wrong: "it is not a JSON object"},
		{name: "JustNull", line: `null`, wrong: "it is not a JSON object"},
		{name: "NumberAsID", line: `{"id":7,"type":"t"}`, wrong: "its id is a JSON number where text is needed"},
		{name: "NotUTF8", line: "{\"id\":\"e\xff\"}", wrong: "it is not UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := newInput("a/b.jsonl", strings.NewReader(tt.line+"\n"))
			line, size, err := in.readLine()
			require.NoError(t, err)

			m, err := decodeLine(line, size)

			if tt.wrong == "" {
				require.NoError(t, err)
				require.Equal(t, []string{tt.id, tt.kind, tt.payload}, []string{m.id, m.kind, string(m.body)})
				return
			}
			require.EqualError(t, err, tt.wrong)

			// It is sent all the same, for the service to refuse.
			in = newInput("a/b.jsonl", strings.NewReader(tt.line+"\n"))
			c, err := in.next()
			require.NoError(t, err)
			require.Equal(t, "stripe:b.jsonl line 1", c.id)
			require.EqualValues(t, 1, in.malformed)
			err = handler.JSON(refuseLine)(t.Context(), nil, &handler.Message{Payload: c.body})
			require.ErrorIs(t, err, handler.ErrUndecodable)
			require.True(t, handler.IsPermanent(err))
			require.ErrorContains(t, err, "b.jsonl line 1: "+tt.wrong)
			_, err = in.next()
			require.Equal(t, io.EOF, err)
		})
	}
}

// A body that is a provider's event is sent as it stands, any other in one.
func TestCallback(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, line string
		id, body   string
	}{
		{name: "Event", line: `{"id":"e","type":"t","body":{"id":"e", "type":"t"}}`, id: "stripe:e", body: `{"id":"e", "type":"t"}`},
		{name: "OtherID", line: `{"id":"e","type":"t","body":{"id":"f","type":"t"}}`, id: "stripe:e", body: `{"id":"e","type":"t","data":{"object":{"id":"f","type":"t"}}}`},
		{name: "Unnamed", line: `{"id":"e","type":"t","body":{"data":{"object":{"id":"f"}}}}`, id: "stripe:e", body: `{"id":"e","type":"t","data":{"object":{"id":"f"}}}`},
		{name: "Text", line: `{"id":"e","type":"t","body":"a"}`, id: "stripe:e", body: `{"id":"e","type":"t","data":{"object":"a"}}`},
		{name: "NoBody", line: `{"id":"e","type":"t"}`, id: "stripe:e", body: `{"id":"e","type":"t","data":{"object":null}}`},
		{name: "NoID", line: `{"type":"t","body":1}`, body: `{"id":"","type":"t","line":"f line 1","data":{"object":1}}`},
		{name: "LongID", line: `{"id":"` + strings.Repeat("x", 250) + `","body":1}`, body: `{"id":"` + strings.Repeat("x", 250) + `","type":"","line":"f line 1","data":{"object":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			c, err := newInput("f", strings.NewReader(tt.line)).next()

			require.NoError(t, err)
			require.Equal(t, []string{tt.id, tt.body}, []string{c.id, string(c.body)})
		})
	}
}

func TestInput_Sizes(t *testing.T) {
	t.Parallel()

	whole := strings.Repeat("x", maxLine)
	in := newInput("big", strings.NewReader("\n \r\n"+whole+"\r\n"+whole+"x\n"+strings.Repeat(" ", maxLine+5)+"\nlast"))

	var ids []string
	for {
		c, err := in.next()
		if err != nil {
			require.Equal(t, io.EOF, err)
			break
		}
		ids = append(ids, c.id)
		require.LessOrEqual(t, len(c.body), maxBody)
	}

	require.Equal(t, []string{"stripe:big line 3", "stripe:big line 4", "stripe:big line 5", "stripe:big line 6"}, ids)
	require.EqualValues(t, 2, in.empty)
}

func TestInput_UnreadableFile(t *testing.T) {
	t.Parallel()

	errDisk := errors.New("disk on fire")
	in := newInput("orders", io.MultiReader(strings.NewReader("{}\nhalf a li"), iotest.ErrReader(errDisk)))

	_, err := in.next()
	require.NoError(t, err)
	_, err = in.next()

	require.ErrorIs(t, err, errDisk)
	require.ErrorContains(t, err, "read line 2 of orders")
}

// Distinct counts contents, and each message that nothing tells from others.
func TestTally(t *testing.T) {
	t.Parallel()

	in := newInput("f", strings.NewReader(strings.Join([]string{
		`{"id":"a","type":"t","body":{"id":"a","type":"t","pending_webhooks":2}}`,
		`{"id":"a","type":"t","body":{"id":"a","type":"t","pending_webhooks":1}}`,
		`{"id":"a","type":"t","body":2}`,
		`{"id":"a","type":"u","body":2}`,
		`{"id":"","type":"t","body":1}`,
		`{"id":"","type":"t","body":1}`,
		`{`,
		`{`,
	}, "\n")))
	for {
		if _, err := in.next(); err != nil {
			break
		}
	}

	require.EqualValues(t, 8, in.tally.produced)
	require.EqualValues(t, 7, in.tally.distinct)
}

func TestGenerateEvents(t *testing.T) {
	t.Parallel()

	require.Equal(t, generateEvents(300), generateEvents(300), "the same every time")

	in := newInput("events", strings.NewReader(string(generateEvents(300))))
	kinds := map[string]int{}
	for {
		c, err := in.next()
		if err != nil {
			break
		}
		kinds[c.kind]++
	}
	require.Equal(t, map[string]int{
		"payment_intent.succeeded":        3 * (300 + 3 + 3 + 3), // torn, refused and mismatched ones too
		"charge.refunded":                 3 * 60,
		"payment_intent.payment_failed":   3 * 37,
		"payout.reconciliation_completed": 3 * 3,
	}, kinds)
}
