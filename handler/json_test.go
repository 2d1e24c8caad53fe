package handler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

type order struct {
	ID       int64          `json:"id"`
	Name     string         `json:"name"`
	Quoted   int            `json:"quoted,string"`
	PaidAt   time.Time      `json:"paid_at"`
	Blob     []byte         `json:"blob"`
	Lines    map[string]int `json:"lines"`
	Customer struct {
		Age uint8 `json:"age"`
	} `json:"customer"`
	Card card `json:"card"`
}

// card refuses its text and quotes it, as many types do.
type card string

func (c *card) UnmarshalText(text []byte) error {
	if !bytes.HasPrefix(text, []byte("tok_")) {
		return fmt.Errorf("card %q is no token", text)
	}
	*c = card(text)
	return nil
}

func TestJSON_HandsTheValueOver(t *testing.T) {
	t.Parallel()

	msg := &handler.Message{ID: "evt_1", Payload: []byte(`{"id":42,"unknown":true}`)}
	h := handler.JSON(func(_ context.Context, _ pgx.Tx, o order, m *handler.Message) error {
		require.Equal(t, order{ID: 42}, o)
		require.Same(t, msg, m)
		return errCause
	})

	require.Equal(t, errCause, h(t.Context(), nil, msg), "its error passes untouched")
}

func TestJSON_NullIsTheZeroValue(t *testing.T) {
	t.Parallel()

	h := handler.JSON(func(_ context.Context, _ pgx.Tx, o order, _ *handler.Message) error {
		require.Zero(t, o)
		return errCause
	})

	require.Equal(t, errCause, h(t.Context(), nil, &handler.Message{Payload: []byte("null")}))
}

// A value is new for each message: a map would keep what the one before put in.
func TestJSON_ValuesAreNotShared(t *testing.T) {
	t.Parallel()

	var last map[string]int
	h := handler.JSON(func(_ context.Context, _ pgx.Tx, value map[string]int, _ *handler.Message) error {
		last = value
		return nil
	})
	require.NoError(t, h(t.Context(), nil, &handler.Message{Payload: []byte(`{"a":1}`)}))
	require.NoError(t, h(t.Context(), nil, &handler.Message{Payload: []byte(`{"b":2}`)}))

	require.Equal(t, map[string]int{"b": 2}, last)
}

func TestJSON_Undecodable(t *testing.T) {
	t.Parallel()

	const into = "of JSON into handler_test.order: payload cannot be decoded: "
	tests := []struct {
		name    string
		payload string
		want    string
	}{
		{name: "Nil", payload: "", want: "decode 0 bytes " + into + "not JSON at byte 0"},
		{name: "Cut", payload: `{"id":4`, want: "decode 7 bytes " + into + "not JSON at byte 7"},
		{name: "NotJSON", payload: `secret`, want: "decode 6 bytes " + into + "not JSON at byte 1"},
		{name: "Trailing", payload: `{} secret`, want: "decode 9 bytes " + into + "not JSON at byte 4"},
		{name: "WrongKind", payload: `{"name":4242}`, want: "decode 13 bytes " + into + "a JSON number where field name has a string, at byte 12"},
		{name: "Nested", payload: `{"customer":{"age":4242}}`, want: "decode 25 bytes " + into + "a JSON number where field customer.age has a uint8, at byte 23"},
		{name: "WholeValue", payload: `["secret"]`, want: "decode 10 bytes " + into + "a JSON array where the value has a handler_test.order, at byte 1"},
		{name: "OwnDecoder", payload: `{"card":"4242"}`, want: "decode 15 bytes " + into + "refused by *errors.errorString"},
		{name: "Time", payload: `{"paid_at":"secret"}`, want: "decode 20 bytes " + into + "refused by *time.ParseError"},
		{name: "Base64", payload: `{"blob":"?secret"}`, want: "decode 18 bytes " + into + "refused by base64.CorruptInputError"},
		{name: "Quoted", payload: `{"quoted":"secret"}`, want: "decode 19 bytes " + into + "refused by *errors.errorString"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := handler.JSON(func(context.Context, pgx.Tx, order, *handler.Message) error {
				return errors.New("the handler ran")
			})

			err := h(t.Context(), nil, &handler.Message{Payload: []byte(tt.payload)})

			require.EqualError(t, err, tt.want)
			require.ErrorIs(t, err, handler.ErrUndecodable)
			require.True(t, handler.IsPermanent(err))
		})
	}
}

func TestJSON_NilHandler(t *testing.T) {
	t.Parallel()

	require.Panics(t, func() { handler.JSON[order](nil) })
}

// FuzzJSON looks for a payload whose words get into the error: errors are
// logged and kept, payloads hold card numbers.
func FuzzJSON(f *testing.F) {
	const marker = "424242424242" // a number, a word, a key
	for _, around := range [][2]string{
		{``, ``},
		{`"`, `"`},
		{`[`, `]`},
		{`{"id":"`, `"}`},
		{`{"id":1`, `.5}`},
		{`{"name":`, `}`},
		{`{"`, `":1}`},
		{`{"lines":{"`, `":"x"}}`},
		{`{"lines":{"x":"`, `"}}`},
		{`{"quoted":"`, `x"}`},
		{`{"paid_at":"`, `"}`},
		{`{"blob":"`, `?"}`},
		{`{"card":"`, `"}`},
		{`{"customer":{"age":`, `}}`},
		{`{"id":1}`, ``},
		{`{"id":1e`, `}`},
	} {
		f.Add([]byte(around[0]), []byte(around[1]))
	}
	handlers := []handler.Func{
		handler.JSON(func(context.Context, pgx.Tx, order, *handler.Message) error { return nil }),
		handler.JSON(func(context.Context, pgx.Tx, map[string]order, *handler.Message) error { return nil }),
		handler.JSON(func(context.Context, pgx.Tx, map[uint8]int8, *handler.Message) error { return nil }),
		handler.JSON(func(context.Context, pgx.Tx, any, *handler.Message) error { return nil }),
		handler.JSON(func(context.Context, pgx.Tx, *json.Number, *handler.Message) error { return nil }),
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		payload := append(append(bytes.Clone(before), marker...), after...)
		for _, h := range handlers {
			err := h(t.Context(), nil, &handler.Message{Payload: payload})
			if err == nil {
				continue
			}
			require.False(t, strings.Contains(err.Error(), marker), "the error shows the payload: %s", err)
			require.ErrorIs(t, err, handler.ErrUndecodable)
			require.True(t, handler.IsPermanent(err))
		}
	})
}
