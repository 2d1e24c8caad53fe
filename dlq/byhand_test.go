package dlq_test

import (
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
)

// Somebody has written into errors what no program of ours does. Whoever lists the
// dead letters, or looks at this one, reads it all the same, and all the others.
func TestStore_ErrorsByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.add(t, letter(dlq.Permanent, "as it was", 1))
	other := letter(dlq.Permanent, "changed", 2)
	other.MessageID = [16]byte{9}
	id := b.add(t, other)
	for errors, want := range map[string][]string{
		`{NULL}`:           {""},
		`{a,NULL}`:         {"a", ""},
		`{{a,b},{c,NULL}}`: {"a", "b", "c", ""},
		`{}`:               {},
	} {
		b.exec(t, `UPDATE semel.dead_letters SET errors = $1::text[] WHERE id = $2`, errors, id)

		require.Equal(t, want, b.load(t, id).Errors, errors)
		letters, err := b.store.List(t.Context(), b.pool, dlq.Filter{})
		require.NoError(t, err, errors)
		require.Len(t, letters, 2)
		require.Equal(t, want, letters[0].Errors, errors)
	}
}

// Somebody has set the sums of dead letters to all that a column can hold. One more
// copy, and one more failure, are noted all the same: a message whose letter cannot
// be written would be tried for ever.
func TestStore_SumsByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	dead, second := letter(dlq.Permanent, "a", 1), letter(dlq.Mismatch, "b", 2)
	id, mismatch := b.add(t, dead), b.add(t, second)
	b.exec(t, `UPDATE semel.dead_letters SET attempts = 2147483647, count = 9223372036854775807`)

	require.Equal(t, id, b.add(t, dead))
	require.Equal(t, mismatch, b.add(t, second))
	b.inTx(t, func(tx pgx.Tx) {
		counted, err := b.store.Again(t.Context(), tx, dead.ConsumerID, dead.MessageID)
		require.NoError(t, err)
		require.True(t, counted)
		for _, one := range []int64{id, mismatch} {
			noted, err := b.store.Fail(t.Context(), tx, one, dlq.Failure{Reason: dlq.Exhausted, Attempts: 8})
			require.NoError(t, err)
			require.True(t, noted)
		}
	})
	for _, one := range []int64{id, mismatch} {
		l := b.load(t, one)
		require.Equal(t, math.MaxInt32, l.Attempts)
		require.EqualValues(t, math.MaxInt64, l.Count)
	}
}
