package handler_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

var errCause = errors.New("card was declined")

func TestErrorKinds(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name        string
		err         error
		permanent   bool
		unavailable bool
		delay       time.Duration
		hasDelay    bool
	}{
		{name: "Nil", err: nil},
		{name: "Plain", err: errCause},
		{name: "Permanent", err: handler.Permanent(errCause), permanent: true},
		{name: "PermanentWrapped", err: fmt.Errorf("pay: %w", handler.Permanent(errCause)), permanent: true},
		{name: "PermanentJoined", err: errors.Join(errors.New("close"), handler.Permanent(errCause)), permanent: true},
		{name: "Unavailable", err: handler.Unavailable(errCause), unavailable: true},
		{name: "UnavailableWrapped", err: fmt.Errorf("pay: %w", handler.Unavailable(errCause)), unavailable: true},
		{name: "RetryAfter", err: handler.RetryAfter(time.Minute, errCause), delay: time.Minute, hasDelay: true},
		{name: "RetryAfterWrapped", err: fmt.Errorf("pay: %w", handler.RetryAfter(time.Minute, errCause)), delay: time.Minute, hasDelay: true},
		{name: "RetryAtOnce", err: handler.RetryAfter(0, errCause), hasDelay: true},
		{name: "RetryInThePast", err: handler.RetryAfter(-time.Minute, errCause), hasDelay: true},
		{name: "UnavailableForAWhile", err: handler.Unavailable(handler.RetryAfter(time.Minute, errCause)), unavailable: true, delay: time.Minute, hasDelay: true},
		{name: "OuterDelayWins", err: handler.RetryAfter(time.Second, handler.RetryAfter(time.Minute, errCause)), delay: time.Second, hasDelay: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.permanent, handler.IsPermanent(tt.err))
			require.Equal(t, tt.unavailable, handler.IsUnavailable(tt.err))
			delay, ok := handler.RetryDelay(tt.err)
			require.Equal(t, tt.hasDelay, ok)
			require.Equal(t, tt.delay, delay)
			if tt.err != nil {
				require.ErrorIs(t, tt.err, errCause)
				require.ErrorContains(t, tt.err, errCause.Error())
			}
		})
	}
}

// A handler may mark what a call returned without looking at it first.
func TestErrorKinds_NilStaysNil(t *testing.T) {
	t.Parallel()

	require.NoError(t, handler.Permanent(nil))
	require.NoError(t, handler.Unavailable(nil))
	require.NoError(t, handler.RetryAfter(time.Minute, nil))
}

// The mark adds no words: people read the cause in the dead letter.
func TestErrorKinds_KeepTheText(t *testing.T) {
	t.Parallel()

	require.EqualError(t, handler.Permanent(errCause), errCause.Error())
	require.EqualError(t, handler.Unavailable(errCause), errCause.Error())
	require.EqualError(t, handler.RetryAfter(time.Minute, errCause), errCause.Error())
}
