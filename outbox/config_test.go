package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
)

// lazyPool is a pool that connects to nothing.
func lazyPool(t *testing.T, params string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?"+params)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestNewRelay_Refused(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		config outbox.RelayConfig
		want   string
	}{
		{"Schema", outbox.RelayConfig{Schema: "a\nb"}, "impossible schema name"},
		{"Batch", outbox.RelayConfig{Batch: -1}, "Batch is -1"},
		{"Window", outbox.RelayConfig{Window: 10_001}, "Window is 10001"},
		{"MaxBlocked", outbox.RelayConfig{MaxBlocked: -1}, "MaxBlocked is -1"},
		{"Negative", outbox.RelayConfig{Poll: -1}, "Poll is -1ns"},
		{"LeaseUnderTwoAttempts", outbox.RelayConfig{Lease: 9 * time.Second}, "Lease is 9s; it must be at least twice AttemptTimeout, which is 5s"},
		{"Backoff", outbox.RelayConfig{RetryDelay: time.Minute}, "RetryMaxDelay is 30s; it must not be below RetryDelay, which is 1m0s"},
		{"AgeUnderOneAttemptAndPause", outbox.RelayConfig{MaxAge: 34 * time.Second}, "MaxAge is 34s; it must hold one attempt and one pause, 35s"},
		{"Quarantine", outbox.RelayConfig{Quarantine: 7}, "Quarantine is 7"},
		{"Retention", outbox.RelayConfig{Retention: time.Second}, "Retention is 1s; it must be at least 1m0s, or KeepForever"},
		{"Done", outbox.RelayConfig{Done: -1}, "Done is -1"},
		{"DeleteWithArchive", outbox.RelayConfig{Done: outbox.Delete, Archive: outbox.DirectoryArchive("a")}, "Done is Delete: an event that is deleted at once never comes to the Archive"},
		{"KeepWithArchive", outbox.RelayConfig{Retention: outbox.KeepForever, Archive: outbox.DirectoryArchive("a")}, "Retention is KeepForever: what is never purged never comes to the Archive"},
		{"ArchiveRetention", outbox.RelayConfig{ArchiveRetention: -1}, "ArchiveRetention is -1ns"},
	}
	pool := lazyPool(t, "pool_max_conns=4")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := outbox.NewRelay(pool, &recorder{}, tt.config)

			require.ErrorContains(t, err, "make relay: ")
			require.ErrorContains(t, err, tt.want)
		})
	}

	_, err := outbox.NewRelay(nil, &recorder{}, outbox.RelayConfig{})
	require.ErrorContains(t, err, "pool is nil")
	_, err = outbox.NewRelay(pool, nil, outbox.RelayConfig{})
	require.ErrorContains(t, err, "publisher is nil")
	_, err = outbox.NewRelay(lazyPool(t, "pool_max_conns=3"), &recorder{}, outbox.RelayConfig{Batch: -1})
	require.ErrorContains(t, err, "the pool has 3 connections; the relay needs 4")
	require.ErrorContains(t, err, "Batch is -1", "all at once")
}
