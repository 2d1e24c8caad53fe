package campaign

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A kill is armed only when nothing of this is left.
func TestStock(t *testing.T) {
	t.Parallel()

	tb := setupTables(t)
	s := store{tb.Pool, tb.Schema}
	stocked := func() stock {
		now, err := s.stock(t.Context())
		require.NoError(t, err)
		return now
	}
	require.Zero(t, stocked())

	tb.exec(`INSERT INTO inbox_messages (consumer_id, message_id, message_text, ready_at, lease_owner, parked_at)
		VALUES (1, gen_random_uuid(), 'late', now() + interval '1 hour', NULL, NULL),
			(1, gen_random_uuid(), 'ready', now(), NULL, NULL),
			(1, gen_random_uuid(), 'taken', now() + interval '1 hour', gen_random_uuid(), NULL),
			(1, gen_random_uuid(), 'behind', NULL, NULL, NULL),
			(1, gen_random_uuid(), 'parked', NULL, NULL, now())`)
	tb.exec(`INSERT INTO attempt_journal (consumer_id, message_id) VALUES (1, gen_random_uuid())`)
	tb.dead(a0, "permanent", bytesSent)
	tb.dead(b1, "permanent", bytesSent)
	tb.exec(`UPDATE dead_letters SET state = 'discarded' WHERE message_text = $1`, id(b1))
	require.Equal(t, stock{delayed: 1, stored: 4, suspected: 1, undecided: 1}, stocked())

	require.NoError(t, s.mendLate(t.Context()))
	require.Equal(t, stock{stored: 5, suspected: 1, undecided: 1}, stocked())
	var mended string
	require.NoError(t, tb.Pool.QueryRow(t.Context(), `SELECT message FROM mended`).Scan(&mended))
	require.Equal(t, "late", mended)
}
