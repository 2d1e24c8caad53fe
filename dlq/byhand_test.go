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

// Somebody has closed letters by hand, and said nothing of when. They are kept from
// when a purge has seen them for as long as all others, and not for ever.
func TestStore_PurgeClosedByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ids := []int64{
		b.closed(t, 1, dlq.Open, 400), b.closed(t, 2, dlq.Resolved, 400), b.closed(t, 3, dlq.Discarded, 400),
		b.closed(t, 4, dlq.Open, 400), b.closed(t, 5, dlq.Replaying, 400), b.closed(t, 6, dlq.Resolved, 40),
	}
	b.exec(t, `UPDATE semel.dead_letters SET state = CASE id WHEN $1 THEN 'discarded' ELSE state END, resolved_at = NULL WHERE id = ANY ($2)`, ids[0], ids[:3])
	cfg := dlq.PurgeConfig{MaxAge: 30 * day, RedactAfter: 10 * day}

	done, err := b.store.Purge(t.Context(), b.pool, cfg)
	require.NoError(t, err)
	require.Equal(t, dlq.Purged{Deleted: 1}, done)
	require.Equal(t, []string{"whole", "whole", "whole", "whole", "whole", "gone"}, b.fates(t, ids...))

	for _, later := range []struct {
		days int
		want []string
	}{
		{11, []string{"redacted", "redacted", "redacted", "whole", "whole"}},
		{20, []string{"gone", "gone", "gone", "whole", "whole"}},
	} {
		b.exec(t, `UPDATE semel.dead_letters SET resolved_at = resolved_at - make_interval(days => $1)`, later.days)
		_, err = b.store.Purge(t.Context(), b.pool, cfg)
		require.NoError(t, err)
		require.Equal(t, later.want, b.fates(t, ids[:5]...), later.days)
	}
}

// Somebody has marked a letter as redacted with a time that is none. It has no payload
// all the same, which must not be taken for an empty one.
func TestStore_RedactedByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	id := b.add(t, letter(dlq.Permanent, "a", 1))
	require.Zero(t, b.load(t, id).RedactedAt)
	for _, at := range []string{"infinity", "-infinity", "0001-01-01 00:00+00", "4713-01-01 BC", "20000-01-01"} {
		b.exec(t, `UPDATE semel.dead_letters SET payload = NULL, redacted_at = $1::text::timestamptz`, at)

		require.False(t, b.load(t, id).RedactedAt.IsZero(), at)
		letters, err := b.store.List(t.Context(), b.pool, dlq.Filter{})
		require.NoError(t, err)
		require.False(t, letters[0].RedactedAt.IsZero(), at)
	}
}
