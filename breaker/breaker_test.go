package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
)

func TestBreaker(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var changes []breaker.State
		b := breaker.New("broker", breaker.Config{Failures: 2, OpenFor: time.Second, OpenMax: time.Second, OnChange: func(_, to breaker.State) { changes = append(changes, to) }})
		call := func(ok bool) error {
			done, err := b.Allow()
			if err == nil {
				done(ok)
			}
			return err
		}

		require.NoError(t, call(false))
		require.NoError(t, call(true))
		require.NoError(t, call(false))
		require.Equal(t, breaker.Closed, b.State(), "not two in a row")
		require.NoError(t, call(false))
		require.Equal(t, breaker.Open, b.State())
		require.ErrorIs(t, call(true), breaker.ErrOpen)

		time.Sleep(time.Second + time.Millisecond)
		done, err := b.Allow()
		require.NoError(t, err, "one may try")
		require.ErrorIs(t, call(true), breaker.ErrOpen, "and only one")
		done(false)
		require.Equal(t, breaker.Open, b.State())

		time.Sleep(time.Second + time.Millisecond)
		require.NoError(t, call(true))
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open, breaker.HalfOpen, breaker.Closed}, changes)
	})
}

func TestBreaker_Defaults(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("broker", breaker.Config{})
		for range 3 {
			done, err := b.Allow()
			require.NoError(t, err)
			done(false)
		}
		require.Equal(t, breaker.Open, b.State())
		time.Sleep(2*time.Second + time.Millisecond)
		_, err := b.Allow()
		require.NoError(t, err)
	})
}
