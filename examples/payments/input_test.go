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
		{name: "Text", line: `{"id":"e","type":"t","body":"a\nb"}`, id: "e", kind: "t", payload: "a\nb"},
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

			msg, err := in.next()
			require.NoError(t, err)
			_, end := in.next()

			require.Equal(t, io.EOF, end)
			require.Equal(t, "b.jsonl line 1", msg.Source)
			if tt.wrong == "" {
				require.Equal(t, []string{tt.id, tt.kind, tt.payload}, []string{msg.ID, msg.Type, string(msg.Payload)})
				require.Zero(t, in.malformed)
				return
			}
			require.Equal(t, []string{"b.jsonl line 1", malformedType, tt.line}, []string{msg.ID, msg.Type, string(msg.Payload)})
			require.EqualValues(t, 1, in.malformed)
			err = refuseLine(t.Context(), nil, msg)
			require.ErrorIs(t, err, handler.ErrUndecodable)
			require.True(t, handler.IsPermanent(err))
			require.ErrorContains(t, err, "b.jsonl line 1: payload cannot be decoded: "+tt.wrong)
		})
	}
}

func TestInput_Sizes(t *testing.T) {
	t.Parallel()

	whole := strings.Repeat("x", maxLine)
	in := newInput("big", strings.NewReader("\n \r\n"+whole+"\r\n"+whole+"x\n"+strings.Repeat(" ", maxLine+5)+"\nlast"))

	var sizes []int
	var sources []string
	for {
		msg, err := in.next()
		if err != nil {
			require.Equal(t, io.EOF, err)
			break
		}
		sizes = append(sizes, len(msg.Payload))
		sources = append(sources, msg.Source)
	}

	require.Equal(t, []int{maxLine, keptOfLonger, keptOfLonger, 4}, sizes)
	require.Equal(t, []string{"big line 3", "big line 4", "big line 5", "big line 6"}, sources)
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
		`{"id":"a","type":"t","body":1}`,
		`{"id":"a","type":"t","body":1}`,
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
		msg, err := in.next()
		if err != nil {
			break
		}
		kinds[msg.Type]++
	}
	require.Equal(t, map[string]int{
		"payment_intent.succeeded":        3 * (300 + 3 + 3 + 3), // torn, refused and mismatched ones too
		"charge.refunded":                 3 * 60,
		"payment_intent.payment_failed":   3 * 37,
		"payout.reconciliation_completed": 3 * 3,
		malformedType:                     1,
	}, kinds)
}
