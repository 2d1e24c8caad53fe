package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
)

func refuses(context.Context) error { return breaker.Refused(errDown) }

// A rotated secret must not empty a topic into the dead letters: after five
// refusals in a row they are the dependency's failure, until somebody has helped.
func TestRefused_ManyInARow(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		for range 4 {
			err := b.Do(t.Context(), refuses)
			require.ErrorIs(t, err, errDown)
			require.Nil(t, breaker.Of(err), "it may be the message's fault")
		}
		require.NoError(t, b.Do(t.Context(), succeeds))
		inFlight, err := b.Start()
		require.NoError(t, err)
		for range 4 {
			require.Nil(t, breaker.Of(b.Do(t.Context(), refuses)))
		}
		require.Equal(t, breaker.Closed, b.State())
		require.Same(t, b, breaker.Of(b.Do(t.Context(), refuses)))
		require.Equal(t, breaker.Open, b.State())
		require.ErrorIs(t, b.Cause(), breaker.ErrRefused)
		require.EqualError(t, b.Cause(), "credentials refused 5 times in a row: down")
		require.Same(t, b, breaker.Of(inFlight.Done(t.Context(), breaker.Refused(errDown))), "one more of them")
		require.Equal(t, "credentials refused", b.Stats().LastError)
		require.EqualValues(t, 10, b.Stats().Denied)
		require.Zero(t, b.Stats().Failures)

		for range 3 {
			require.Equal(t, 30*time.Second, b.RetryIn())
			time.Sleep(30*time.Second + 1)
			require.Same(t, b, breaker.Of(b.Do(t.Context(), refuses)))
			require.ErrorIs(t, b.Cause(), breaker.ErrRefused)
		}
		time.Sleep(30*time.Second + 1)
		require.NoError(t, b.Do(t.Context(), succeeds))
		require.Equal(t, breaker.Closed, b.State())
		require.Nil(t, breaker.Of(b.Do(t.Context(), refuses)), "counted anew")
		open(t, b)
		require.Equal(t, 2*time.Second, b.RetryIn(), "this is another trouble")
		require.NotErrorIs(t, b.Cause(), breaker.ErrRefused)
	})
}

// Answers and refusals from before it opened are not among those in a row.
func TestRefused_FromBefore(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		var before [2]*breaker.Call
		for i := range before {
			call, err := b.Start()
			require.NoError(t, err)
			before[i] = call
		}
		open(t, b)
		time.Sleep(b.RetryIn() + 1)
		require.NoError(t, b.Do(t.Context(), succeeds))
		for range 4 {
			require.Nil(t, breaker.Of(b.Do(t.Context(), refuses)))
		}
		require.Nil(t, breaker.Of(before[0].Done(t.Context(), breaker.Refused(errDown))))
		require.ErrorIs(t, b.Do(t.Context(), fails), errDown)
		require.Equal(t, breaker.Closed, b.State())
		require.NoError(t, before[1].Done(t.Context(), nil))
		require.Same(t, b, breaker.Of(b.Do(t.Context(), refuses)), "the fifth")
	})
}

// After an outage the first answer may be a refusal that is about one message
// only: the dependency is back.
func TestRefused_TrialAfterAnOutage(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		open(t, b)
		time.Sleep(b.RetryIn() + 1)
		require.Nil(t, breaker.Of(b.Do(t.Context(), refuses)))
		require.Equal(t, breaker.Closed, b.State())
	})
}

func TestRefused_Never(t *testing.T) {
	t.Parallel()

	b := breaker.New("bank", breaker.Config{Refusals: -1})
	for range 100 {
		require.ErrorIs(t, b.Do(t.Context(), refuses), errDown)
	}
	require.Equal(t, breaker.Closed, b.State())
	require.NoError(t, breaker.Refused(nil))
}
