package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

const (
	// maxLine is the longest line that travels whole, keptOfLonger what
	// travels of a longer one.
	maxLine      = 16 << 20
	keptOfLonger = 1 << 20

	// malformedType marks a line that is no message. It is sent under a name made
	// of file and line, and refused by the handler: so the engine itself puts it in
	// front of a person.
	malformedType = "malformed line"

	// maxBody is the largest callback: a line in base64.
	maxBody = 24 << 20
)

// input reads callbacks from JSON Lines.
type input struct {
	name   string
	lines  *bufio.Reader
	number int // of the line read last

	unparsable []byte // the body of one more callback, after the last line

	empty     int64 // lines without anything
	malformed int64
	tally     tally
}

func newInput(name string, r io.Reader) *input {
	name = filepath.Base(name)
	if len(name) > 100 || dedup.CheckID(name) != nil {
		name = "input" // it becomes part of ids
	}
	return &input{name: name, lines: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next callback. Every line is one, whatever is wrong with it,
// unless it is empty. The error is io.EOF at the end.
func (in *input) next() (callback, error) {
	for {
		line, size, err := in.readLine()
		if errors.Is(err, io.EOF) && in.unparsable != nil {
			c := callback{body: in.unparsable}
			in.unparsable = nil
			in.tally.add(c)
			return c, nil
		}
		if err != nil {
			return callback{}, err
		}
		if len(bytes.TrimSpace(line)) == 0 && size == len(line) {
			in.empty++
			continue
		}
		m, wrong := decodeLine(line, size)
		from := fmt.Sprintf("%s line %d", in.name, in.number)
		if wrong != nil {
			in.malformed++
			m = message{id: from, kind: malformedType}
			m.body, err = json.Marshal(malformedLine{Wrong: from + ": " + wrong.Error(), Line: line[:min(len(line), keptOfLonger)]})
		}
		var c callback
		if err == nil {
			c, err = m.callback(from)
		}
		if err != nil {
			return c, fmt.Errorf("make a callback of %s: %w", from, err)
		}
		in.tally.add(c)
		return c, nil
	}
}

// readLine returns a line without its end, or the beginning of one that is too
// long, and its size. The last line needs no end.
func (in *input) readLine() (line []byte, size int, err error) {
	in.number++
	for {
		part, err := in.lines.ReadSlice('\n')
		size += len(part)
		if size <= maxLine+len("\r\n") {
			line = append(line, part...)
		} else {
			line = line[:min(len(line), keptOfLonger)]
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && size > 0:
		case errors.Is(err, io.EOF):
			return nil, 0, err
		case err != nil:
			return nil, 0, fmt.Errorf("read line %d of %s: %w", in.number, in.name, err)
		}
		whole := len(line) == size
		if in.number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // some editors begin a file with it
		}
		if whole {
			line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			size = len(line)
		}
		if size > maxLine {
			line = line[:keptOfLonger]
		}
		return line, size, nil
	}
}

// message is what a line says.
type message struct {
	id, kind string
	body     json.RawMessage
}

// malformedLine is the body of one that says nothing.
type malformedLine struct {
	Wrong string `json:"wrong"`
	Line  []byte `json:"line"`
}

// decodeLine reads {"id": text, "type": text, "body": anything}. An id or a type that
// is missing is for the engine to judge. The error quotes nothing: it is shown to
// people and logged.
func decodeLine(line []byte, size int) (m message, err error) {
	var l struct {
		ID   string          `json:"id"`
		Type string          `json:"type"`
		Body json.RawMessage `json:"body"`
	}
	switch {
	case size > maxLine:
		return m, fmt.Errorf("it has %d bytes, at most %d are taken; only its beginning is kept", size, maxLine)
	case !utf8.Valid(line):
		return m, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(line, &l); err != nil {
		var syntax *json.SyntaxError
		var mistyped *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return m, fmt.Errorf("it is not JSON at byte %d of %d", syntax.Offset, size)
		case errors.As(err, &mistyped) && mistyped.Field != "":
			return m, fmt.Errorf("its %s is a JSON %s where text is needed", mistyped.Field, mistyped.Value)
		default:
			return m, errors.New("it is not a JSON object")
		}
	}
	if bytes.Equal(line, []byte("null")) {
		return m, errors.New("it is not a JSON object")
	}
	return message{id: l.ID, kind: l.Type, body: l.Body}, nil
}

// callback is what a provider sends.
type callback struct {
	id   string // of the message that the service makes of it, empty where it can make none
	kind string
	body []byte
}

// callback makes one of a message: its body, where that is the event of a provider;
// else an event with its id and type, and with that body in it, or what that has in
// data. One without a usable id names its line, so that it is not taken for a copy of
// another.
func (m message) callback(line string) (c callback, err error) {
	c = callback{id: endpoint + ":" + m.id, kind: m.kind, body: m.body}
	if m.id == "" || dedup.CheckID(c.id) != nil {
		c.id = ""
	}
	var whole struct {
		ID   string          `json:"id"`
		Type string          `json:"type"`
		Line string          `json:"line,omitempty"`
		Data json.RawMessage `json:"data"`
	}
	err = json.Unmarshal(m.body, &whole)
	if err == nil && c.id != "" && whole.ID == m.id && whole.Type == m.kind {
		return c, nil
	}
	if err != nil || whole.Data == nil {
		if whole.Data, err = json.Marshal(map[string]json.RawMessage{"object": m.body}); err != nil {
			return c, err
		}
	}
	whole.ID, whole.Type, whole.Line = m.id, m.kind, ""
	if c.id == "" {
		whole.Line = line
	}
	c.body, err = json.Marshal(whole)
	return c, err
}

// refuseLine sends a malformed line to the dead letters.
func refuseLine(_ context.Context, _ pgx.Tx, e lineEvent, _ *handler.Message) error {
	return handler.Permanent(fmt.Errorf("%w: %s", handler.ErrUndecodable, e.Data.Object.Wrong))
}

// lineEvent is the event that a malformed line comes in.
type lineEvent struct {
	Data struct {
		Object malformedLine `json:"object"`
	} `json:"data"`
}

// recordOnly handles an event of a type that moves no money: it only notes
// that it was there. It is for files of the user's own, which may hold any.
func recordOnly(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	if msg.Type == "" {
		return handler.Permanent(errors.New("the event says no type"))
	}
	_, err := tx.Exec(ctx, `INSERT INTO effects (message, type, amount) VALUES ($1, $2, 0)`, msg.ID, msg.Type)
	return err
}
