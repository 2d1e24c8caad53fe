package pgtest_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNew(t *testing.T) {
	t.Parallel()
	one, two := pgtest.New(t), pgtest.New(t)

	require.NotEqual(t, one.Schema, two.Schema)
	require.NoError(t, schema.Check(t.Context(), one.Pool, one.Schema))

	// A plain table lands in the test's own schema, also through the URL.
	_, err := one.Pool.Exec(t.Context(), `CREATE TABLE effects (n int)`)
	require.NoError(t, err)
	child, err := pgx.Connect(t.Context(), one.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, child.Close(t.Context())) }()
	_, err = child.Exec(t.Context(), `INSERT INTO effects VALUES (1)`)
	require.NoError(t, err)
	require.Equal(t, 1, count(t, one.Pool, "effects"))
	_, err = two.Pool.Exec(t.Context(), `SELECT n FROM effects`)
	require.Error(t, err)

	require.EqualValues(t, 3, one.NewPool(t, 3).Config().MaxConns)
}

func TestNew_DropsItsSchema(t *testing.T) {
	t.Parallel()
	watch := pgtest.New(t)
	var name string

	tb := run(t, func(tb testing.TB) {
		db := pgtest.New(tb)
		name = db.Schema
		open, err := pgx.Connect(tb.Context(), db.URL) // of a child that was killed
		require.NoError(tb, err)
		_, err = open.Exec(tb.Context(), `BEGIN; LOCK TABLE processed_messages`)
		require.NoError(tb, err)
	})

	require.Empty(t, tb.errors)
	var left int
	require.NoError(t, watch.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname = $1`, name).Scan(&left))
	require.Zero(t, left)
}

func TestNew_LockedConnection(t *testing.T) {
	t.Parallel()
	tb := run(t, func(tb testing.TB) {
		_, err := pgtest.New(tb).Pool.Exec(tb.Context(), `SELECT pg_advisory_lock(hashtext(current_schema()))`)
		require.NoError(tb, err)
	})
	require.Contains(t, tb.errors, "advisory locks")
}

func TestNew_LeakedConnection(t *testing.T) {
	t.Parallel()
	var leaked *pgxpool.Conn
	var pool *pgxpool.Pool
	tb := run(t, func(tb testing.TB) {
		pool = pgtest.New(tb).Pool
		var err error
		leaked, err = pool.Acquire(tb.Context())
		require.NoError(tb, err)
	})
	require.Contains(t, tb.errors, "not returned")
	leaked.Release()
	pool.Close()
}

func TestNew_KeyValueString(t *testing.T) { // changes the environment: not parallel
	pgtest.New(t) // skips without a database
	config, err := pgx.ParseConfig(os.Getenv("DATABASE_URL"))
	require.NoError(t, err)
	t.Setenv("DATABASE_URL", fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=disable",
		config.Host, config.Port, config.User, config.Password, config.Database))

	db := pgtest.New(t)

	_, err = db.Pool.Exec(t.Context(), `CREATE TABLE effects (n int)`)
	require.NoError(t, err)
	require.Zero(t, count(t, db.Pool, db.Schema+".effects"))
}

func count(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n))
	return n
}

// fakeTB is a test inside a test: it may fail.
type fakeTB struct {
	testing.TB
	errors   string
	cleanups []func()
}

// run runs f and then its cleanups, as the testing package does.
func run(t *testing.T, f func(tb testing.TB)) *fakeTB {
	t.Helper()
	pgtest.New(t) // skips here, not in there, without a database
	tb := &fakeTB{TB: t}
	inGoroutine(func() { f(tb) })
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		inGoroutine(tb.cleanups[i])
	}
	return tb
}

// inGoroutine lets f end by FailNow.
func inGoroutine(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (f *fakeTB) Helper()           {}
func (f *fakeTB) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }
func (f *fakeTB) FailNow()          { runtime.Goexit() }
func (f *fakeTB) Errorf(format string, args ...any) {
	f.errors += fmt.Sprintf(format, args...)
}
