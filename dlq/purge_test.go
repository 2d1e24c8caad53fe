package dlq_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

const day = 24 * time.Hour

// closed stores a letter that was closed so many days ago; an open one, and one
// that is being replayed, failed then.
func (b *testBundle) closed(t *testing.T, n byte, state dlq.State, days int) int64 {
	t.Helper()
	id := b.inState(t, n, state)
	b.exec(t, `UPDATE semel.dead_letters
		SET last_failed_at = CASE WHEN resolved_at IS NULL THEN clock_timestamp() - make_interval(days => $2) ELSE clock_timestamp() - interval '1000 days' END,
			resolved_at = CASE WHEN resolved_at IS NOT NULL THEN clock_timestamp() - make_interval(days => $2) END
		WHERE id = $1`, id, days)
	return id
}

// fates are what became of letters: "whole", "redacted" or "gone".
func (b *testBundle) fates(t *testing.T, ids ...int64) (fates []string) {
	t.Helper()
	for _, id := range ids {
		l, err := b.store.Load(t.Context(), b.pool, id)
		switch {
		case err != nil:
			require.ErrorIs(t, err, dlq.ErrNotFound)
			fates = append(fates, "gone")
		case l.RedactedAt.IsZero():
			require.Equal(t, "4111 1111 1111 1111", string(l.Message.Payload))
			require.Equal(t, handler.Headers{{Name: "card", Value: []byte("4111")}}, l.Message.Headers)
			fates = append(fates, "whole")
		default:
			require.Nil(t, l.Message.Payload)
			require.Equal(t, handler.Headers{{Name: "card"}}, l.Message.Headers)
			fates = append(fates, "redacted")
		}
	}
	return fates
}

// What a person is done with loses its payload after a while, and goes later.
func TestStore_Purge(t *testing.T) {
	t.Parallel()

	all := []dlq.State{dlq.Open, dlq.Replaying, dlq.Resolved, dlq.Discarded}
	tests := []struct {
		name  string
		cfg   dlq.PurgeConfig
		young []string // of each state, 20 days ago
		old   []string // 40 days
		older []string // 100 days
		want  dlq.Purged
	}{
		{
			name: "Both", cfg: dlq.PurgeConfig{MaxAge: 90 * day, RedactAfter: 30 * day},
			young: []string{"whole", "whole", "whole", "whole"}, old: []string{"whole", "whole", "redacted", "redacted"}, older: []string{"whole", "whole", "gone", "gone"},
			want: dlq.Purged{Deleted: 2, Redacted: 2},
		},
		{
			name: "OnlyDelete", cfg: dlq.PurgeConfig{MaxAge: 30 * day},
			young: []string{"whole", "whole", "whole", "whole"}, old: []string{"whole", "whole", "gone", "gone"}, older: []string{"whole", "whole", "gone", "gone"},
			want: dlq.Purged{Deleted: 4},
		},
		{
			name: "OnlyRedact", cfg: dlq.PurgeConfig{RedactAfter: 90 * day},
			young: []string{"whole", "whole", "whole", "whole"}, old: []string{"whole", "whole", "whole", "whole"}, older: []string{"whole", "whole", "redacted", "redacted"},
			want: dlq.Purged{Redacted: 2},
		},
		{
			name: "Open", cfg: dlq.PurgeConfig{MaxAge: 90 * day, RedactAfter: 30 * day, Open: true},
			young: []string{"whole", "whole", "whole", "whole"}, old: []string{"redacted", "whole", "redacted", "redacted"}, older: []string{"gone", "whole", "gone", "gone"},
			want: dlq.Purged{Deleted: 3, Redacted: 3},
		},
		{
			name: "OneByOne", cfg: dlq.PurgeConfig{MaxAge: 90 * day, RedactAfter: 30 * day, Batch: 1},
			young: []string{"whole", "whole", "whole", "whole"}, old: []string{"whole", "whole", "redacted", "redacted"}, older: []string{"whole", "whole", "gone", "gone"},
			want: dlq.Purged{Deleted: 2, Redacted: 2},
		},
		{
			name: "NothingThatOld", cfg: dlq.PurgeConfig{MaxAge: 200 * day, RedactAfter: 101 * day},
			young: []string{"whole", "whole", "whole", "whole"}, old: []string{"whole", "whole", "whole", "whole"}, older: []string{"whole", "whole", "whole", "whole"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			var young, old, older []int64
			for i, state := range all {
				young = append(young, b.closed(t, byte(i), state, 20))
				old = append(old, b.closed(t, byte(10+i), state, 40))
				older = append(older, b.closed(t, byte(20+i), state, 100))
			}

			got, err := b.store.Purge(t.Context(), b.pool, tt.cfg)

			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.young, b.fates(t, young...))
			require.Equal(t, tt.old, b.fates(t, old...))
			require.Equal(t, tt.older, b.fates(t, older...))

			again, err := b.store.Purge(t.Context(), b.pool, tt.cfg)
			require.NoError(t, err)
			require.Equal(t, dlq.Purged{}, again, "what is done is done")
		})
	}
}

// A redacted letter still tells what happened, and has nothing left to leak.
func TestStore_Purge_Redacts(t *testing.T) {
	t.Parallel()

	b := setup(t)
	id := b.closed(t, 1, dlq.Discarded, 40)
	before := b.load(t, id)

	_, err := b.store.Purge(t.Context(), b.pool, dlq.PurgeConfig{RedactAfter: 30 * day})
	require.NoError(t, err)

	got := b.load(t, id)
	require.WithinDuration(t, time.Now(), got.RedactedAt, time.Hour)
	var leaks int
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT count(*) FROM dead_letters AS d WHERE d::text LIKE '%34313131%' OR d::text LIKE '%4111%'`).Scan(&leaks))
	require.Zero(t, leaks, "it is in the row still, as bytes or as text")
	want := *before
	want.RedactedAt = got.RedactedAt
	want.Message.Payload, want.Message.Headers = nil, handler.Headers{{Name: "card"}}
	require.Equal(t, &want, got)
}

// A letter that stands for a message of the inbox is the only copy of it.
func TestStore_Purge_KeepsWhatTheInboxRefersTo(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var ids []int64
	for i, state := range []dlq.State{dlq.Open, dlq.Resolved, dlq.Discarded} {
		old, older := b.closed(t, byte(i), state, 40), b.closed(t, byte(10+i), state, 100)
		ids = append(ids, old, older)
		b.exec(t, `INSERT INTO semel.inbox_messages (consumer_id, message_id, dead_letter_id, parked_at)
			SELECT 1, gen_random_uuid(), id, clock_timestamp() FROM unnest($1::bigint[]) AS id`, []int64{old, older})
	}
	cfg := dlq.PurgeConfig{MaxAge: 90 * day, RedactAfter: 30 * day, Open: true}

	got, err := b.store.Purge(t.Context(), b.pool, cfg)
	require.NoError(t, err)
	require.Equal(t, dlq.Purged{}, got)
	require.Equal(t, []string{"whole", "whole", "whole", "whole", "whole", "whole"}, b.fates(t, ids...))

	b.exec(t, `DELETE FROM semel.inbox_messages`)
	got, err = b.store.Purge(t.Context(), b.pool, cfg)
	require.NoError(t, err)
	require.Equal(t, dlq.Purged{Deleted: 3, Redacted: 3}, got)
}

// Nothing was ever closed, so nothing leads to them but the whole table.
func TestStore_Purge_OnlyOpenOnes(t *testing.T) {
	t.Parallel()

	b := setup(t)
	young, old := b.closed(t, 1, dlq.Open, 20), b.closed(t, 2, dlq.Open, 40)

	got, err := b.store.Purge(t.Context(), b.pool, dlq.PurgeConfig{MaxAge: 30 * day, Open: true})
	require.NoError(t, err)
	require.Equal(t, dlq.Purged{Deleted: 1}, got)
	require.Equal(t, []string{"whole", "gone"}, b.fates(t, young, old))
}

func TestStore_Purge_OneConsumer(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO semel.consumers (id, name) VALUES (1, 'shipping'), (2, 'billing')`)
	mine, others := b.closed(t, 1, dlq.Resolved, 40), b.closed(t, 2, dlq.Resolved, 40)
	b.exec(t, `UPDATE semel.dead_letters SET consumer_id = 2 WHERE id = $1`, others)

	for _, consumer := range []string{"nobody", "shipping"} {
		_, err := b.store.Purge(t.Context(), b.pool, dlq.PurgeConfig{Consumer: consumer, MaxAge: day})
		require.NoError(t, err)
		if consumer == "nobody" {
			require.Equal(t, []string{"whole", "whole"}, b.fates(t, mine, others))
		}
	}
	require.Equal(t, []string{"gone", "whole"}, b.fates(t, mine, others))
}

// What was handled is none of its business: copies are duplicates as before.
func TestStore_Purge_LeavesTheRecord(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.closed(t, 1, dlq.Discarded, 100)
	b.exec(t, `INSERT INTO semel.processed_messages (consumer_id, message_id, outcome, processed_at)
		SELECT consumer_id, message_id, 5, clock_timestamp() - interval '100 days' FROM semel.dead_letters`)

	got, err := b.store.Purge(t.Context(), b.pool, dlq.PurgeConfig{MaxAge: day})
	require.NoError(t, err)
	require.Equal(t, dlq.Purged{Deleted: 1}, got)
	var outcomes []int16
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT array_agg(outcome) FROM processed_messages`).Scan(&outcomes))
	require.Equal(t, []int16{5}, outcomes)
}

// Somebody opens letters again at the moment they are purged: they stay whole.
func TestStore_Purge_MeetsOneThatIsOpenedAgain(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		state dlq.State // before
		sql   string    // what somebody does
		open  bool
	}{
		{name: "DiesAgain", state: dlq.Resolved, sql: `state = 'open', resolved_at = NULL, last_failed_at = clock_timestamp()`},
		{name: "DiesAgainAndOpenOnesGo", state: dlq.Resolved, sql: `state = 'open', resolved_at = NULL, last_failed_at = clock_timestamp()`, open: true},
		{name: "IsReplayed", state: dlq.Open, sql: `state = 'replaying'`, open: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			old, older := b.closed(t, 1, tt.state, 40), b.closed(t, 2, tt.state, 100)
			tx, err := b.pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			_, err = tx.Exec(t.Context(), `UPDATE dead_letters SET `+tt.sql)
			require.NoError(t, err)

			var purging sync.WaitGroup
			var got dlq.Purged
			var purgeErr error
			purging.Go(func() {
				got, purgeErr = b.store.Purge(t.Context(), b.pool, dlq.PurgeConfig{MaxAge: 90 * day, RedactAfter: 30 * day, Open: tt.open})
			})
			b.awaitLockWait(t)
			require.NoError(t, tx.Commit(t.Context()))
			purging.Wait()

			require.NoError(t, purgeErr)
			require.Equal(t, dlq.Purged{}, got)
			require.Equal(t, []string{"whole", "whole"}, b.fates(t, old, older))
		})
	}
}

// awaitLockWait waits until a connection to the schema waits for a lock.
func (b *testBundle) awaitLockWait(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		var waiting int
		err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, b.schema).Scan(&waiting)
		return err == nil && waiting > 0
	}, time.Minute, 10*time.Millisecond)
}

// Many in the same blocks: short transactions, and progress to the end.
func TestStore_Purge_InBatches(t *testing.T) {
	t.Parallel()

	b := setup(t)
	const each = 2000
	b.exec(t, `INSERT INTO semel.dead_letters (consumer_id, message_id, reason, state, resolved_at, payload)
		SELECT 1, gen_random_uuid(), 'permanent', s, CASE WHEN s <> 'open' THEN clock_timestamp() - make_interval(days => days) END, '4111'
		FROM generate_series(1, $1::int) AS n, unnest('{open,resolved,discarded}'::text[]) AS s, unnest('{20,40,100}'::int[]) AS days`, each)
	steps, last, part := int64(0), int64(0), 0.0

	got, err := b.store.Purge(t.Context(), b.pool, dlq.PurgeConfig{MaxAge: 90 * day, RedactAfter: 30 * day, Batch: 500, Progress: func(changed int64, p float64) {
		steps++
		require.LessOrEqual(t, changed-last, int64(500), "more than a batch in one transaction")
		last, part = changed, p
	}})

	require.NoError(t, err)
	require.Equal(t, dlq.Purged{Deleted: 2 * each, Redacted: 2 * each}, got)
	require.Equal(t, int64(4*each), last)
	require.InDelta(t, 1, part, 1e-9)
	require.GreaterOrEqual(t, steps, int64(4*each/500))
	var counts string
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT string_agg(n, ' ' ORDER BY n) FROM (
		SELECT state || CASE WHEN redacted_at IS NULL THEN '' ELSE '-redacted' END || (CASE WHEN payload IS NULL THEN '-empty' ELSE '' END) || '=' || count(*) AS n
		FROM dead_letters GROUP BY state, redacted_at IS NULL, payload IS NULL, redacted_at IS NULL) AS counts`).Scan(&counts))
	require.Equal(t, fmt.Sprintf("discarded-redacted-empty=%[1]d discarded=%[1]d open=%d resolved-redacted-empty=%[1]d resolved=%[1]d", each, 3*each), counts)
}

func TestStore_Purge_Refused(t *testing.T) {
	t.Parallel()

	b := setup(t)
	id := b.closed(t, 1, dlq.Resolved, 100)
	tests := []struct {
		name string
		cfg  dlq.PurgeConfig
		want string
	}{
		{name: "Nothing", want: "neither a maximum age nor an age of redaction"},
		{name: "NegativeAge", cfg: dlq.PurgeConfig{MaxAge: -1}, want: "must not be negative"},
		{name: "NegativeRedaction", cfg: dlq.PurgeConfig{RedactAfter: -1}, want: "must not be negative"},
		{name: "NegativeBatch", cfg: dlq.PurgeConfig{MaxAge: day, Batch: -1}, want: "must not be negative"},
		{name: "DeletedBefore", cfg: dlq.PurgeConfig{MaxAge: day, RedactAfter: day}, want: "the age of redaction must be less"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := b.store.Purge(t.Context(), b.pool, tt.cfg)

			require.ErrorContains(t, err, tt.want)
			require.Equal(t, dlq.Purged{}, got)
			require.Equal(t, []string{"whole"}, b.fates(t, id))
		})
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.store.Purge(ctx, b.pool, dlq.PurgeConfig{MaxAge: day})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "0 deleted, 0 redacted")
}
