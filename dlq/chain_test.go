package dlq_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

func TestChain(t *testing.T) {
	t.Parallel()

	inner := errors.New("inner")
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{name: "Nil", err: nil, want: nil},
		{name: "One", err: inner, want: []string{"inner"}},
		{name: "Wrapped", err: fmt.Errorf("outer: %w", inner), want: []string{"outer: inner", "inner"}},
		{name: "MarksSayNothingNew", err: handler.Permanent(handler.Unavailable(inner)), want: []string{"inner"}},
		{name: "Joined", err: errors.Join(inner, fmt.Errorf("b: %w", errors.New("c"))), want: []string{"inner\nb: c", "inner", "b: c", "c"}},
		{name: "Panics", err: &panicError{}, want: []string{"the text of an error of type *dlq_test.panicError cannot be read: it panics"}},
		{name: "CannotBeFollowed", err: errors.Join((*typedNil)(nil), inner), want: []string{
			"the text of an error of type *errors.joinError cannot be read: it panics",
			"the text of an error of type *dlq_test.typedNil cannot be read: it panics",
			"inner",
		}},
		{name: "LeadsBackToItself", err: &loopError{}, want: []string{"loop"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.want, dlq.Chain(tt.err))
		})
	}
}

func TestChain_IsBounded(t *testing.T) {
	t.Parallel()

	err := errors.New(strings.Repeat("€", dlq.MaxErrorBytes))
	for i := range 100 {
		err = fmt.Errorf("%d %w", i, err)
	}

	chain := dlq.Chain(err)

	require.Len(t, chain, dlq.MaxErrors)
	require.Equal(t, "... and more", chain[dlq.MaxErrors-1])
	for _, text := range chain {
		require.LessOrEqual(t, len(text), dlq.MaxErrorBytes)
		require.True(t, utf8.ValidString(text))
	}
	require.Contains(t, chain[0], "bytes)")
}

type panicError struct{}

func (*panicError) Error() string { panic("no text") }

// typedNil is an error that is not nil, of a pointer that is.
type typedNil struct{ cause error }

func (e *typedNil) Error() string { return e.cause.Error() }
func (e *typedNil) Unwrap() error { return e.cause }

type loopError struct{}

func (*loopError) Error() string   { return "loop" }
func (e *loopError) Unwrap() error { return e }
