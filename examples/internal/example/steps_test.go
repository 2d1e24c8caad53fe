package example_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/example"
)

func TestInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		errStep := errors.New("step")
		var taken []time.Duration
		step := func(err error) example.Step {
			return example.Step{After: time.Hour, Do: func() error {
				taken = append(taken, time.Since(began))
				return err
			}}
		}

		require.ErrorIs(t, example.InTurn(t.Context(), step(nil), step(errStep), step(nil)), errStep)
		require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour}, taken)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, example.InTurn(ctx, step(nil)), context.DeadlineExceeded)
		require.Len(t, taken, 2)
	})
}
