package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
)

var errDown = errors.New("down")

func fails(context.Context) error    { return errDown }
func succeeds(context.Context) error { return nil }

// open opens a breaker whose Failures is the default.
func open(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	for range 3 {
		require.ErrorIs(t, b.Do(t.Context(), fails), errDown)
	}
	require.Equal(t, breaker.Open, b.State())
}

func TestDo_Errors(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		require.NoError(t, b.Do(t.Context(), succeeds))

		err := b.Do(t.Context(), fails)
		var failure *breaker.FailureError
		require.ErrorAs(t, err, &failure)
		require.ErrorIs(t, err, errDown)
		require.EqualError(t, err, "down")
		require.Same(t, b, breaker.Of(fmt.Errorf("charge: %w", err)))

		require.NoError(t, b.Do(t.Context(), succeeds), "not three in a row")
		open(t, b)
		require.ErrorIs(t, b.Cause(), errDown)
		err = b.Do(t.Context(), func(context.Context) error { panic("called") })
		var refused *breaker.OpenError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.NotErrorIs(t, err, breaker.ErrBudget)
		require.Equal(t, 2*time.Second, refused.RetryIn)
		require.True(t, refused.NotSent())
		require.Same(t, b, breaker.Of(err))
		require.EqualError(t, err, "call bank: the circuit breaker is open: not asked, ask again in 2s")

		require.Nil(t, breaker.Of(errDown))
		require.Nil(t, breaker.Of(nil))
	})
}

// What callers are cancelled by is never the dependency's fault: every deploy would
// open every breaker.
func TestDo_CallerCancels(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		for range 10 {
			ctx, cancel := context.WithCancelCause(t.Context())
			err := b.Do(ctx, func(ctx context.Context) error {
				cancel(errors.New("drain"))
				return context.Cause(ctx) // says nothing of a cancellation
			})
			require.EqualError(t, err, "drain")
			require.Nil(t, breaker.Of(err))
		}
		require.Equal(t, breaker.Closed, b.State())

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, b.Do(ctx, func(context.Context) error { panic("called") }), context.Canceled)
	})
}

func TestDo_CallersDeadline(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		patience time.Duration
		left     time.Duration
		want     breaker.State
	}{
		{name: "LittleTimeLeft", left: 10 * time.Millisecond, want: breaker.Closed},
		{name: "TimeEnough", left: time.Second, want: breaker.Open},
		{name: "AlwaysEnough", patience: -1, left: 10 * time.Millisecond, want: breaker.Open},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				b := breaker.New("bank", breaker.Config{Patience: tt.patience})
				for range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), tt.left)
					err := b.Do(ctx, hangs)
					cancel()
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.Equal(t, tt.want == breaker.Open, breaker.Of(err) == b)
				}
				require.Equal(t, tt.want, b.State())
			})
		})
	}
}

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestDo_WhatCounts(t *testing.T) {
	t.Parallel()

	errNotFound := errors.New("not found")
	tests := []struct {
		name string
		err  error
		want breaker.State // after one failure before and after each
	}{
		{name: "Failure", err: errDown, want: breaker.Open},
		{name: "AnswerCountsAnew", err: errNotFound, want: breaker.Closed},
		{name: "AnotherBreakerIsOpen", err: fmt.Errorf("log in: %w", breaker.ErrOpen), want: breaker.Open},
		{name: "NotEvenAsked", err: notSent{errNotFound}, want: breaker.Open},
		{name: "Refused", err: breaker.Refused(errDown), want: breaker.Open},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := breaker.New("bank", breaker.Config{
				Failures:  2,
				IsFailure: func(err error) bool { return !errors.Is(err, errNotFound) },
			})
			require.ErrorIs(t, b.Do(t.Context(), fails), errDown)
			err := b.Do(t.Context(), func(context.Context) error { return tt.err })
			require.ErrorIs(t, err, tt.err)
			failed := errors.Is(tt.err, errDown) && tt.name == "Failure"
			require.Equal(t, failed, breaker.Of(err) == b)
			if !failed {
				require.Equal(t, breaker.Closed, b.State())
				require.ErrorIs(t, b.Do(t.Context(), fails), errDown)
			}
			require.Equal(t, tt.want, b.State())
		})
	}
}

type notSent struct{ error }

func (notSent) NotSent() bool   { return true }
func (n notSent) Unwrap() error { return n.error }

// Case P9: a call panics, or ends its goroutine. The breaker was told: nothing is
// stuck, and no poisonous message opens it.
func TestDo_PanicAndGoexit(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		for range 5 {
			require.PanicsWithValue(t, "poison", func() { _ = b.Do(t.Context(), func(context.Context) error { panic("poison") }) })
			exit(b)
		}
		require.Equal(t, breaker.Closed, b.State())

		open(t, b)
		time.Sleep(b.RetryIn() + 1)
		exit(b)
		require.Equal(t, breaker.Open, b.State(), "the trial has shown nothing good")
		time.Sleep(b.RetryIn() + 1)
		require.Panics(t, func() { _ = b.Do(t.Context(), func(context.Context) error { panic("poison") }) })
		require.Equal(t, breaker.Open, b.State())
		time.Sleep(b.RetryIn() + 1)
		require.NoError(t, b.Do(t.Context(), succeeds))
		require.Equal(t, breaker.Closed, b.State())
	})
}

// exit ends a goroutine in a call.
func exit(b *breaker.Breaker) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Do(context.Background(), func(context.Context) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-done
}
