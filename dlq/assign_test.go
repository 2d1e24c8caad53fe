package dlq_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// inState stores a letter and gives it a state.
func (b *testBundle) inState(t *testing.T, n byte, state dlq.State) int64 {
	t.Helper()
	id := b.add(t, &dlq.Letter{
		ConsumerID: 1, MessageID: [16]byte{n}, Reason: dlq.Permanent, Errors: []string{"no such order"},
		Message: &handler.Message{
			ID: "evt", Type: "paid", Key: []byte("order-1"), Payload: []byte("4111 1111 1111 1111"),
			Headers: handler.Headers{{Name: "card", Value: []byte("4111")}},
		},
	})
	b.exec(t, `UPDATE semel.dead_letters SET state = $2, resolved_at = CASE WHEN $2 IN ('resolved', 'discarded') THEN clock_timestamp() END WHERE id = $1`, id, string(state))
	return id
}

func TestStore_Assign(t *testing.T) {
	t.Parallel()

	b := setup(t)
	open, replaying := b.inState(t, 1, dlq.Open), b.inState(t, 2, dlq.Replaying)
	resolved, discarded := b.inState(t, 3, dlq.Resolved), b.inState(t, 4, dlq.Discarded)
	const nobodys = 1 << 40

	a, err := b.store.Assign(t.Context(), b.pool, "ann", discarded, open, nobodys, replaying, resolved)

	require.NoError(t, err)
	require.Equal(t, dlq.Assigned{Changed: []int64{open, replaying}, Closed: []int64{discarded, resolved}, Missing: []int64{nobodys}}, a)
	for id, want := range map[int64]string{open: "ann", replaying: "ann", resolved: "", discarded: ""} {
		require.Equal(t, want, b.load(t, id).Owner)
	}
	require.Empty(t, b.load(t, open).DecidedBy, "to look after it is no decision")

	a, err = b.store.Assign(t.Context(), b.pool, "", open)
	require.NoError(t, err)
	require.Equal(t, dlq.Assigned{Changed: []int64{open}}, a)
	var isNull bool
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT owner IS NULL FROM dead_letters WHERE id = $1`, open).Scan(&isNull))
	require.True(t, isNull)
	unowned, err := b.store.Count(t.Context(), b.pool, dlq.Filter{State: dlq.Open, Unowned: true})
	require.NoError(t, err)
	require.EqualValues(t, 1, unowned)
}

// Whoever looks after a message looks after it when it dies again.
func TestStore_Assign_DiesAgain(t *testing.T) {
	t.Parallel()

	b := setup(t)
	id := b.inState(t, 1, dlq.Open)
	_, err := b.store.Assign(t.Context(), b.pool, "ann", id)
	require.NoError(t, err)
	b.exec(t, `UPDATE semel.dead_letters SET state = 'resolved', resolved_at = clock_timestamp()`)

	require.Equal(t, id, b.inState(t, 1, dlq.Open))
	require.Equal(t, "ann", b.load(t, id).Owner)
}

func TestStore_Assign_Refused(t *testing.T) {
	t.Parallel()

	b := setup(t)
	id := b.inState(t, 1, dlq.Open)

	tests := []struct {
		name  string
		owner string
		want  string
	}{
		{name: "Spaces", owner: " ", want: "must not begin or end with white space"},
		{name: "SpaceAround", owner: "ann ", want: "must not begin or end with white space"},
		{name: "TooLong", owner: strings.Repeat("a", dlq.MaxOwnerBytes+1), want: "256 bytes, at most 255 are allowed"},
		{name: "NUL", owner: "a\x00b", want: "without control characters"},
		{name: "NotUTF8", owner: "a\xffb", want: "without control characters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := b.store.Assign(t.Context(), b.pool, tt.owner, id)

			require.ErrorIs(t, err, dlq.ErrBadOwner)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, dlq.Assigned{}, a)
			require.Empty(t, b.load(t, id).Owner)
		})
	}

	a, err := b.store.Assign(t.Context(), b.pool, strings.Repeat("é", 127), id)
	require.NoError(t, err)
	require.Equal(t, []int64{id}, a.Changed)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, err = b.store.Assign(ctx, b.pool, "ann", id)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, dlq.Assigned{}, a)
}
