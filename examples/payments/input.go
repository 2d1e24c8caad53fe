package main

import (
	"bufio"
	"bytes"
	"cmp"
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

	// malformedType marks a line that is no message. It is published as it
	// came, under a name made of file and line, and refused by the handler: so
	// the engine itself puts it in front of a person.
	malformedType = "malformed line"

	// headerWrong says what is wrong with a malformed line.
	headerWrong = "semel-example-wrong"
)

// input reads messages from JSON Lines.
type input struct {
	name   string
	lines  *bufio.Reader
	number int // of the line read last

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

// next returns the next message. Every line is one, whatever is wrong with it,
// unless it is empty. The error is io.EOF at the end.
func (in *input) next() (*handler.Message, error) {
	for {
		line, size, err := in.readLine()
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 && size == len(line) {
			in.empty++
			continue
		}
		msg, wrong := decodeLine(line, size)
		if wrong != nil {
			in.malformed++
			msg = &handler.Message{
				ID:      fmt.Sprintf("%s line %d", in.name, in.number),
				Type:    malformedType,
				Payload: line,
				Headers: handler.Headers{{Name: headerWrong, Value: []byte(wrong.Error())}},
			}
		}
		msg.Source = fmt.Sprintf("%s line %d", in.name, in.number)
		in.tally.add(msg)
		return msg, nil
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

// decodeLine makes a message of {"id": text, "type": text, "body": anything}. A
// body that is text is the payload itself, any other is the payload as it
// stands. An id or a type that is missing is for the engine to judge. The error
// quotes nothing: it is shown to people and logged.
func decodeLine(line []byte, size int) (*handler.Message, error) {
	var l struct {
		ID   string          `json:"id"`
		Type string          `json:"type"`
		Body json.RawMessage `json:"body"`
	}
	switch {
	case size > maxLine:
		return nil, fmt.Errorf("it has %d bytes, at most %d are taken; only its beginning is kept", size, maxLine)
	case !utf8.Valid(line):
		return nil, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(line, &l); err != nil {
		var syntax *json.SyntaxError
		var mistyped *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return nil, fmt.Errorf("it is not JSON at byte %d of %d", syntax.Offset, size)
		case errors.As(err, &mistyped) && mistyped.Field != "":
			return nil, fmt.Errorf("its %s is a JSON %s where text is needed", mistyped.Field, mistyped.Value)
		default:
			return nil, errors.New("it is not a JSON object")
		}
	}
	if bytes.Equal(line, []byte("null")) {
		return nil, errors.New("it is not a JSON object")
	}
	msg := &handler.Message{ID: l.ID, Type: l.Type, Payload: l.Body}
	if len(l.Body) > 0 && l.Body[0] == '"' {
		var text string
		if err := json.Unmarshal(l.Body, &text); err != nil {
			return nil, errors.New("its body is no JSON text")
		}
		msg.Payload = []byte(text)
	}
	msg.Key = orderingKey(msg)
	return msg, nil
}

// orderingKey is the order that a message is about, as far as one can tell: its
// messages are handled one after the other.
func orderingKey(msg *handler.Message) []byte {
	var e event
	_ = json.Unmarshal(msg.Payload, &e) // what cannot be read is refused by the handler, not here
	p := e.object()
	return []byte(cmp.Or(p.Metadata.OrderID, p.OrderID, p.PaymentIntent, p.ID, msg.ID))
}

// refuseLine sends a malformed line to the dead letters.
func refuseLine(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
	wrong, _ := msg.Headers.First(headerWrong)
	return handler.Permanent(fmt.Errorf("%s: %w: %s", msg.Source, handler.ErrUndecodable, wrong))
}

// recordOnly handles an event of a type that moves no money: it only notes
// that it was there. It is for files of the user's own, which may hold any.
func recordOnly(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	if msg.Type == "" {
		return handler.Permanent(fmt.Errorf("%s: %w: it is missing", msg.Source, handler.ErrUnknownType))
	}
	_, err := tx.Exec(ctx, `INSERT INTO effects (message, type, amount) VALUES ($1, $2, 0)`, msg.ID, msg.Type)
	return err
}
