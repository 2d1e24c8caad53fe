package inbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/inbox"
)

// A process that is told to end while it starts has not failed: a rolling
// deploy that changes its mind must not raise an alarm.
func TestRun_StoppedWhileStarting(t *testing.T) {
	t.Parallel()

	b := setup(t)
	blocker, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, blocker.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = blocker.Exec(t.Context(), `LOCK TABLE `+pgx.Identifier{b.Schema, "schema_migrations"}.Sanitize()+` IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	in := b.inbox(t, effect, inbox.Config{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx, newScripted()) }()
	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = '`+b.Schema+`' AND wait_event_type = 'Lock'`) > 0
	}, deadline, tick)

	stop()

	require.NoError(t, <-done)
}
