package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// What Prepare keeps is the handler's, in the same attempt and no other.
func TestPrepare_KeepsForTheHandler(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var seen []any
	prepare := func(ctx context.Context, msg *handler.Message) error {
		cause := handler.CauseFrom(ctx)
		require.Nil(t, cause.Kept(), "of another attempt")
		if cause.Attempt < 3 {
			cause.Keep(fmt.Sprintf("%s, attempt %d", msg.ID, cause.Attempt))
		}
		return nil
	}
	in := b.inboxOn(t, b.Pool, "shipping", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		cause := handler.CauseFrom(ctx)
		seen = append(seen, cause.Kept())
		if cause.Attempt < 3 {
			return errors.New("not yet")
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Prepare: prepare})

	outcome, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, []any{"evt_1, attempt 1", "evt_1, attempt 2", nil}, seen)
}
