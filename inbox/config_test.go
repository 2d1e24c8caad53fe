package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// lazyPool is a pool that never connects: New does no I/O.
func lazyPool(t *testing.T, maxConns string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?pool_max_conns="+maxConns)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func nothing(context.Context, pgx.Tx, *handler.Message) error { return nil }

func TestNew_Defaults(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		maxConns string
		workers  int
	}{
		{name: "PoolMinusTwo", maxConns: "10", workers: 8},
		{name: "AtLeastOne", maxConns: "1", workers: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			in, err := inbox.New(lazyPool(t, tt.maxConns), "shipping", nothing, inbox.Config{})
			require.NoError(t, err)

			cfg := inbox.ConfigOf(in)
			require.Equal(t, "semel", cfg.Schema)
			require.Equal(t, tt.workers, cfg.Workers)
			require.Equal(t, 30*time.Second, cfg.HandlerTimeout)
			require.Equal(t, 5*time.Second, cfg.WatchdogGrace)
			require.Equal(t, 30*time.Second, cfg.DrainTimeout)
			require.Equal(t, 2*time.Second, cfg.LockTimeout)
			require.Equal(t, 10*time.Second, cfg.StatementTimeout)
			require.Equal(t, 3, cfg.QuickAttempts)
			require.Equal(t, 50*time.Millisecond, cfg.QuickDelay)
			require.Equal(t, time.Second, cfg.QuickMaxDelay)
			require.Equal(t, 5*time.Second, cfg.OutageMaxDelay)
			require.Equal(t, 16<<20, cfg.MaxPayload)
			require.Equal(t, 10_000, cfg.MaxInFlight)
			require.Equal(t, 64<<20, cfg.MaxInFlightBytes)
			require.Equal(t, 14*24*time.Hour, cfg.Retention)
			require.Equal(t, inbox.Retry{Attempts: 8, Delay: time.Second, MaxDelay: 30 * time.Second, MaxAge: 24 * time.Hour}, cfg.Retry)
			require.Nil(t, cfg.RetryOf)
			require.Equal(t, inbox.PerKey, cfg.Ordering)
			require.Equal(t, 10_000_000, cfg.MaxStored)
			require.Equal(t, 100_000, cfg.MaxStoredPerKey)
			require.Equal(t, time.Minute, cfg.Lease)
			require.Equal(t, max(4*tt.workers, 16), cfg.WorkAhead)
			require.Empty(t, cfg.DeadLetterOwner)
			require.Nil(t, cfg.OnDeadLetter)
			require.Zero(t, cfg.DeadLetterRetention)
			require.Zero(t, cfg.DeadLetterRedactAfter)
			require.Equal(t, inbox.TooOldDeadLetter, cfg.TooOld)
			require.Equal(t, inbox.BadIDDeadLetter, cfg.BadID)
			require.Equal(t, inbox.MismatchDeadLetter, cfg.Mismatch)
			require.Equal(t, pgx.TxOptions{}, cfg.TxOptions)
		})
	}
}

// How many attempts are quick and how many there are in all follow from each
// other where only one is given.
func TestNew_Attempts(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name                      string
		quick, all                int
		wantQuick, wantAll        int
		maxStored, wantMaxStored  int
		workAhead, wantsWorkAhead int
	}{
		{name: "FewInAll", all: 2, wantQuick: 2, wantAll: 2, wantMaxStored: 10_000_000, wantsWorkAhead: 32},
		{name: "ManyInAll", all: 100, wantQuick: 3, wantAll: 100, maxStored: -1, wantMaxStored: -1, wantsWorkAhead: 32},
		{name: "ManyQuick", quick: 10, wantQuick: 10, wantAll: 10, wantMaxStored: 10_000_000, wantsWorkAhead: 32},
		{name: "FewQuick", quick: 1, wantQuick: 1, wantAll: 8, wantMaxStored: 10_000_000, workAhead: 1, wantsWorkAhead: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			in, err := inbox.New(lazyPool(t, "10"), "shipping", nothing, inbox.Config{
				QuickAttempts: tt.quick, Retry: inbox.Retry{Attempts: tt.all}, MaxStored: tt.maxStored, WorkAhead: tt.workAhead,
			})
			require.NoError(t, err)

			cfg := inbox.ConfigOf(in)
			require.Equal(t, tt.wantQuick, cfg.QuickAttempts)
			require.Equal(t, tt.wantAll, cfg.Retry.Attempts)
			require.Equal(t, tt.wantMaxStored, cfg.MaxStored)
			require.Equal(t, tt.wantsWorkAhead, cfg.WorkAhead)
		})
	}
}

// A lease that is over before an attempt is lets another worker have the message
// while it fails.
func TestNew_LeaseOutlastsAnAttempt(t *testing.T) {
	t.Parallel()

	for timeout, want := range map[time.Duration]time.Duration{time.Second: time.Minute, 10 * time.Minute: 20 * time.Minute, 24 * time.Hour: 24 * time.Hour} {
		in, err := inbox.New(lazyPool(t, "10"), "shipping", nothing, inbox.Config{HandlerTimeout: timeout})
		require.NoError(t, err)
		require.Equal(t, want, inbox.ConfigOf(in).Lease)
	}
}

func TestNew_ImpossibleValues(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		consumer string
		handler  handler.Func
		cfg      inbox.Config
		want     string
	}{
		{name: "NoConsumer", handler: nothing, want: "consumer name"},
		{name: "BlankConsumer", consumer: " ", handler: nothing, want: "consumer name"},
		{name: "NoHandler", consumer: "c", want: "handler is nil"},
		{name: "TooManyWorkers", consumer: "c", handler: nothing, cfg: inbox.Config{Workers: 9}, want: "Workers is 9; the pool has 10 connections"},
		{name: "NegativeWorkers", consumer: "c", handler: nothing, cfg: inbox.Config{Workers: -1}, want: "Workers is -1"},
		{name: "NegativeTimeout", consumer: "c", handler: nothing, cfg: inbox.Config{HandlerTimeout: -time.Second}, want: "HandlerTimeout is -1s"},
		{name: "TinyLockTimeout", consumer: "c", handler: nothing, cfg: inbox.Config{LockTimeout: 1}, want: "LockTimeout is 1ns"},
		{name: "CapBelowBase", consumer: "c", handler: nothing, cfg: inbox.Config{QuickDelay: 2 * time.Second}, want: "QuickMaxDelay is 1s"},
		{name: "ReadOnly", consumer: "c", handler: nothing, cfg: inbox.Config{TxOptions: pgx.TxOptions{AccessMode: pgx.ReadOnly}}, want: "read-only"},
		{name: "CommitQuery", consumer: "c", handler: nothing, cfg: inbox.Config{TxOptions: pgx.TxOptions{CommitQuery: "commit and chain"}}, want: "CommitQuery"},
		{name: "UnknownPolicy", consumer: "c", handler: nothing, cfg: inbox.Config{BadID: 7}, want: "BadID is 7"},
		{name: "UnknownMismatch", consumer: "c", handler: nothing, cfg: inbox.Config{Mismatch: -1}, want: "Mismatch is -1"},
		{name: "ShortRetention", consumer: "c", handler: nothing, cfg: inbox.Config{Retention: 23 * time.Hour}, want: "Retention is 23h0m0s; it must be at least 24h0m0s, or KeepForever"},
		{
			name: "RetentionOfALongHandler", consumer: "c", handler: nothing, cfg: inbox.Config{Retention: 24 * time.Hour, HandlerTimeout: 13 * time.Hour},
			want: "Retention is 24h0m0s; it must be at least twice HandlerTimeout, which is 13h0m0s",
		},
		{name: "UnknownTooOld", consumer: "c", handler: nothing, cfg: inbox.Config{TooOld: 2}, want: "TooOld is 2"},
		{name: "NegativeLease", consumer: "c", handler: nothing, cfg: inbox.Config{Lease: -1}, want: "Lease is -1ns"},
		{name: "LongLease", consumer: "c", handler: nothing, cfg: inbox.Config{Lease: 25 * time.Hour}, want: "Lease is 25h0m0s; it must be between 1ms and 24h"},
		{name: "NegativeWorkAhead", consumer: "c", handler: nothing, cfg: inbox.Config{WorkAhead: -1}, want: "WorkAhead is -1"},
		{name: "UnknownOrdering", consumer: "c", handler: nothing, cfg: inbox.Config{Ordering: 3}, want: "Ordering is 3"},
		{
			name: "OrderUnderSnapshots", consumer: "c", handler: nothing, cfg: inbox.Config{Ordering: inbox.Strict, TxOptions: pgx.TxOptions{IsoLevel: pgx.Serializable}},
			want: `Ordering strict needs "read committed"`,
		},
		{
			name: "FewerThanQuick", consumer: "c", handler: nothing, cfg: inbox.Config{QuickAttempts: 4, Retry: inbox.Retry{Attempts: 3}},
			want: "Retry.Attempts is 3; it must be at least QuickAttempts, which is 4",
		},
		{name: "NegativeDelay", consumer: "c", handler: nothing, cfg: inbox.Config{Retry: inbox.Retry{Delay: -1}}, want: "Retry.Delay is -1ns"},
		{
			name: "MaxDelayBelowDelay", consumer: "c", handler: nothing, cfg: inbox.Config{Retry: inbox.Retry{Delay: time.Minute}},
			want: "Retry.MaxDelay is 30s; it must not be below Retry.Delay, which is 1m0s",
		},
		{
			name: "MaxAgeBelowMaxDelay", consumer: "c", handler: nothing, cfg: inbox.Config{Retry: inbox.Retry{MaxDelay: 25 * time.Hour}},
			want: "Retry.MaxAge is 24h0m0s; it must be between Retry.MaxDelay, which is 25h0m0s",
		},
		{
			name: "RetentionBelowTheSchedule", consumer: "c", handler: nothing, cfg: inbox.Config{Retry: inbox.Retry{MaxAge: 14 * 24 * time.Hour}},
			want: "Retention is 336h0m0s; it must be longer than Retry.MaxAge and Retry.MaxDelay together",
		},
		{name: "BadOwner", consumer: "c", handler: nothing, cfg: inbox.Config{DeadLetterOwner: "a\x00b"}, want: "DeadLetterOwner"},
		{name: "NegativeLetterRetention", consumer: "c", handler: nothing, cfg: inbox.Config{DeadLetterRetention: -1}, want: "DeadLetterRetention is -1ns"},
		{name: "NegativeRedact", consumer: "c", handler: nothing, cfg: inbox.Config{DeadLetterRedactAfter: -1}, want: "DeadLetterRedactAfter -1ns"},
		{
			name: "RedactAfterDelete", consumer: "c", handler: nothing, cfg: inbox.Config{DeadLetterRetention: 24 * time.Hour, DeadLetterRedactAfter: 24 * time.Hour},
			want: "DeadLetterRedactAfter is 24h0m0s; it must be below DeadLetterRetention",
		},
		{name: "BadSchema", consumer: "c", handler: nothing, cfg: inbox.Config{Schema: "a\x00b"}, want: "schema"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := inbox.New(lazyPool(t, "10"), tt.consumer, tt.handler, tt.cfg)

			require.ErrorContains(t, err, tt.want)
		})
	}

	t.Run("AllAtOnce", func(t *testing.T) {
		t.Parallel()

		_, err := inbox.New(lazyPool(t, "10"), "c", nothing, inbox.Config{Workers: -1, MaxPayload: -1, DrainTimeout: -1})

		require.ErrorContains(t, err, "Workers")
		require.ErrorContains(t, err, "MaxPayload")
		require.ErrorContains(t, err, "DrainTimeout")
	})

	t.Run("NoPool", func(t *testing.T) {
		t.Parallel()

		_, err := inbox.New(nil, "c", nothing, inbox.Config{})

		require.ErrorContains(t, err, "pool is nil")
	})
}
