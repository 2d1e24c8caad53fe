package dedup_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
)

// claimers are the two doors to the primitive: pgx and database/sql.
func claimers() map[string]func(t *testing.T, db *pgtest.DB, consumer, id string, commit bool) (bool, error) {
	return map[string]func(t *testing.T, db *pgtest.DB, consumer, id string, commit bool) (bool, error){
		"Pgx": func(t *testing.T, db *pgtest.DB, consumer, id string, commit bool) (bool, error) {
			t.Helper()
			tx, err := db.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			claimed, err := dedup.NewStore(db.Schema).Claim(t.Context(), tx, consumer, id)
			if commit && err == nil {
				require.NoError(t, tx.Commit(t.Context()))
			}
			return claimed, err
		},
		"SQL": func(t *testing.T, db *pgtest.DB, consumer, id string, commit bool) (bool, error) {
			t.Helper()
			conn := stdlib.OpenDBFromPool(db.Pool)
			defer func() { require.NoError(t, conn.Close()) }()
			tx, err := conn.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			claimed, err := dedup.NewStore(db.Schema).ClaimSQL(t.Context(), tx, consumer, id)
			if commit && err == nil {
				require.NoError(t, tx.Commit())
			}
			return claimed, err
		},
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()

	for name, claim := range claimers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			for _, id := range []string{"evt_1", "9b2f8e34-5d0c-4c1e-8b1a-3f1d6f0a7c11"} {
				claimed, err := claim(t, db, "shipping", id, false)
				require.NoError(t, err)
				require.True(t, claimed)

				claimed, err = claim(t, db, "shipping", id, true)
				require.NoError(t, err)
				require.True(t, claimed, "the first one rolled back")

				claimed, err = claim(t, db, "shipping", id, true)
				require.NoError(t, err)
				require.False(t, claimed, "its effect is committed")

				claimed, err = claim(t, db, "invoicing", id, true)
				require.NoError(t, err)
				require.True(t, claimed, "another consumer")
			}
		})
	}
}

func TestClaim_BadInput(t *testing.T) {
	t.Parallel()

	for name, claim := range claimers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			for _, id := range []string{"", "  ", strings.Repeat("x", 256), "a\x00b", "\xff"} {
				_, err := claim(t, db, "shipping", id, false)
				require.ErrorIs(t, err, dedup.ErrBadID)
			}
			for _, consumer := range []string{"", " ", "a\x00", strings.Repeat("c", 256)} {
				_, err := claim(t, db, consumer, "evt_1", false)
				require.ErrorIs(t, err, dedup.ErrBadConsumer)
			}
		})
	}
}

// The default schema and an aborted transaction: the database's own word.
func TestClaim_PackageFunctions(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1/0`)
	require.Error(t, err)

	_, err = dedup.Claim(t.Context(), tx, "shipping", "evt_1")

	require.ErrorContains(t, err, `claim message "evt_1" for consumer "shipping"`)
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg, "the driver's error is kept")
	require.NoError(t, tx.Rollback(t.Context()))

	conn := stdlib.OpenDBFromPool(db.Pool)
	defer func() { require.NoError(t, conn.Close()) }()
	stx, err := conn.BeginTx(t.Context(), &sql.TxOptions{})
	require.NoError(t, err)
	_, err = dedup.ClaimSQL(t.Context(), stx, "shipping", "")
	require.ErrorIs(t, err, dedup.ErrBadID)
	require.NoError(t, stx.Rollback())
}

// A copy waits for the transaction that has the message, and gets it when that
// rolls back.
func TestClaim_WaitsForTheFirst(t *testing.T) {
	t.Parallel()

	for _, commit := range []bool{true, false} {
		db := pgtest.New(t)
		store := dedup.NewStore(db.Schema)
		first, err := db.Pool.Begin(t.Context())
		require.NoError(t, err)
		claimed, err := store.Claim(t.Context(), first, "shipping", "evt_1")
		require.NoError(t, err)
		require.True(t, claimed)

		second, err := db.Pool.Begin(t.Context())
		require.NoError(t, err)
		pid := second.Conn().PgConn().PID()
		var wg sync.WaitGroup
		wg.Go(func() {
			claimed, err := store.Claim(t.Context(), second, "shipping", "evt_1")
			require.NoError(t, err)
			require.Equal(t, !commit, claimed)
		})
		require.Eventually(t, func() bool {
			var waits bool
			require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1`, pid).Scan(&waits))
			return waits
		}, 20*time.Second, time.Millisecond)
		if commit {
			require.NoError(t, first.Commit(t.Context()))
		} else {
			require.NoError(t, first.Rollback(t.Context()))
		}
		wg.Wait()
		require.NoError(t, second.Rollback(t.Context()))
	}
}

// The engine's claim gives the session its own lock_timeout back, and fails
// with 55P03 when a copy is in flight elsewhere for longer than its own.
func TestQueueClaim_Settings(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	store := dedup.NewStore(db.Schema)
	limits := dedup.NewLimits(50*time.Millisecond, 7*time.Second)
	entry := dedup.Entry{ConsumerID: 1, MessageID: dedup.MessageID("evt_1"), Outcome: handler.Processed}

	begin := func() (pgx.Tx, bool, error) {
		conn, err := db.Pool.Acquire(t.Context())
		require.NoError(t, err)
		t.Cleanup(conn.Release)
		_, err = conn.Exec(t.Context(), `SET lock_timeout = '12345ms'`)
		require.NoError(t, err)
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{})
		claimed := make([]bool, 1)
		store.QueueClaim(b, []dedup.Entry{entry}, false, limits)
		results := conn.Conn().SendBatch(t.Context(), b)
		tx := results.Tx()
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		err = dedup.ReadClaim(results, claimed)
		return tx, claimed[0], err
	}
	first, _, err := begin()
	require.NoError(t, err)
	for setting, want := range map[string]string{"lock_timeout": "12345ms", "idle_in_transaction_session_timeout": "7s"} {
		var got string
		require.NoError(t, first.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got))
		require.Equal(t, want, got, setting)
	}

	_, _, err = begin()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "55P03", pg.Code)
}

// Go and SQL compute the same, so that people can find what programs wrote.
func TestHashes_AgreeWithSQL(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	prefix := pgx.Identifier{db.Schema}.Sanitize() + "."
	for _, text := range []string{"evt_1", "", "ç", "9b2f8e34-5d0c-4c1e-8b1a-3f1d6f0a7c11", "9B2F8E34-5D0C-4C1E-8B1A-3F1D6F0A7C11", "130d007a-93ee-8789-b54c-e4978834551d", strings.Repeat("x", 255)} {
		var consumer int32
		var id dedup.ID
		var fingerprint int64
		require.NoError(t, db.Pool.QueryRow(t.Context(),
			`SELECT `+prefix+`consumer_id($1), `+prefix+`message_id($1), `+prefix+`fingerprint($1, $2)`, text, []byte(text)).Scan(&consumer, &id, &fingerprint))
		require.Equal(t, dedup.ConsumerID(text), consumer, "%q", text)
		require.Equal(t, dedup.MessageID(text), id, "%q", text)
		require.Equal(t, dedup.Fingerprint(text, []byte(text)), fingerprint, "%q", text)
	}
	for outcome := handler.Processed; outcome <= handler.Dead; outcome++ {
		var name string
		require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT `+prefix+`outcome_name($1)`, int16(outcome)).Scan(&name))
		require.Equal(t, outcome.String(), name)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	store := dedup.NewStore(db.Schema)
	require.NoError(t, store.Register(t.Context(), db.Pool, "shipping"))

	_, err := db.Pool.Exec(t.Context(), `UPDATE `+pgx.Identifier{db.Schema, "consumers"}.Sanitize()+` SET name = 'taken' WHERE name = 'shipping'`)
	require.NoError(t, err)
	err = store.Register(t.Context(), db.Pool, "shipping")
	require.ErrorIs(t, err, dedup.ErrConsumerCollision)
	require.ErrorContains(t, err, `"taken"`)

	require.ErrorIs(t, dedup.Register(t.Context(), db.Pool, ""), dedup.ErrBadConsumer)
}

// Ten processes of a new service start at once. At READ COMMITTED either key
// may see the other's row first; above, whoever comes second was refused, and
// with it the start of its process.
func TestRegister_AtOnce(t *testing.T) {
	t.Parallel()

	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			config := db.Pool.Config()
			config.ConnConfig.RuntimeParams["default_transaction_isolation"] = isolation
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			defer pool.Close()
			store := dedup.NewStore(db.Schema)
			for i := range 100 {
				var wg sync.WaitGroup
				var errs [2]error
				for n := range errs {
					wg.Go(func() { errs[n] = store.Register(t.Context(), pool, fmt.Sprint("shipping", i)) })
				}
				wg.Wait()
				require.NoError(t, errors.Join(errs[:]...))
			}
		})
	}
}
