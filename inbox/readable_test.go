package inbox_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// A handler whose error cannot be asked anything killed the process, which
// met it again at the next start: `var err *declined; return err` is an error
// that is not nil, and its methods read a nil pointer.
func TestFailure_ErrorThatCannotBeRead(t *testing.T) {
	t.Parallel()

	var typedNil *declined
	tests := []struct {
		name string
		h    handler.Func
		want string
	}{
		{name: "TypedNil", want: "*inbox_test.declined", h: func(context.Context, pgx.Tx, *handler.Message) error { return typedNil }},
		{name: "PanickedWithTypedNil", want: "*inbox.PanicError", h: func(context.Context, pgx.Tx, *handler.Message) error { panic(typedNil) }},
		{name: "IsKnowsItsOwnTypeOnly", want: "methods panic", h: func(context.Context, pgx.Tx, *handler.Message) error { return handler.Permanent(picky{}) }},
		{name: "WrapsItself", want: "wraps itself", h: func(context.Context, pgx.Tx, *handler.Message) error { return circle{} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, tt.h, inbox.Config{QuickAttempts: 2})

			outcome, err := in.Process(t.Context(), message("evt_1"))

			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
			letters := b.letters(t)
			require.Len(t, letters, 1)
			require.Equal(t, 2, letters[0].Attempts)
			require.Contains(t, strings.Join(letters[0].Errors, "\n"), tt.want)
		})
	}
}

type declined struct{ cause error }

func (e *declined) Error() string { return e.cause.Error() }
func (e *declined) Unwrap() error { return e.cause }

type picky struct{}

func (picky) Error() string        { return "picky" }
func (picky) Is(target error) bool { return target.(picky) == picky{} } //nolint:forcetypeassert // the bug is the point

type circle struct{}

func (circle) Error() string   { return "circle" }
func (c circle) Unwrap() error { return c }
