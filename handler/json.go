package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ErrUndecodable is returned by a typed handler such as [JSON] for a payload
// that is not what its type says. It is always [Permanent].
var ErrUndecodable = errors.New("payload cannot be decoded")

// JSON returns a handler that decodes the payload into a new T before h sees
// it. A payload that does not decode fails with [ErrUndecodable]; the error
// names the place and never shows the payload. As always in encoding/json,
// unknown fields are ignored and the payload null is the zero T.
//
// It panics if h is nil.
func JSON[T any](h func(ctx context.Context, tx pgx.Tx, value T, msg *Message) error) Func {
	if h == nil {
		panic("handler: JSON handler is nil")
	}
	return func(ctx context.Context, tx pgx.Tx, msg *Message) error {
		var value T
		if err := json.Unmarshal(msg.Payload, &value); err != nil {
			return Permanent(fmt.Errorf("decode %d bytes of JSON into %s: %w: %s", len(msg.Payload), reflect.TypeFor[T](), ErrUndecodable, whereJSONFails(err)))
		}
		return h(ctx, tx, value, msg)
	}
}

// whereJSONFails says what is wrong and where, without the payload's own
// words: the standard library's messages quote characters and numbers from it.
func whereJSONFails(err error) string {
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("not JSON at byte %d", syntax.Offset)
	case errors.As(err, &mistyped):
		kind, _, _ := strings.Cut(mistyped.Value, " ") // "number 12.50": only the word
		return fmt.Sprintf("a JSON %s where %s has a %s, at byte %d", kind, fieldName(mistyped.Field), mistyped.Type, mistyped.Offset)
	default:
		return fmt.Sprintf("refused by %T", err) // a type's own UnmarshalJSON: its text may quote
	}
}

func fieldName(path string) string {
	if path == "" {
		return "the value"
	}
	return "field " + path
}
