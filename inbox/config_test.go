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
			require.Equal(t, inbox.TooOldDeadLetter, cfg.TooOld)
			require.Equal(t, inbox.BadIDDeadLetter, cfg.BadID)
			require.Equal(t, inbox.MismatchDeadLetter, cfg.Mismatch)
			require.Equal(t, pgx.TxOptions{}, cfg.TxOptions)
		})
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
