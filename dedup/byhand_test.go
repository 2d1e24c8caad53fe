package dedup_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Somebody sets by hand how far the purge of a consumer has come. Without end, all is
// purged: a message is too old however young it is, and not the other way round.
func TestQueueWatermark_ByHand(t *testing.T) {
	t.Parallel()

	tests := []struct {
		before string
		want   string // of messages of yesterday
	}{
		{before: "infinity", want: "too old"},
		{before: "20000-01-01", want: "too old"},
		{before: "-infinity", want: "remembered"},
		{before: "0001-01-01 00:00Z", want: "remembered"},
		{before: "0044-03-15 BC", want: "remembered"},
	}
	for _, tt := range tests {
		t.Run(tt.before, func(t *testing.T) {
			t.Parallel()

			b := setupPurge(t)
			b.exec(t, `UPDATE consumers SET purged_before = $1::text::timestamptz WHERE name = 'shipping'`, tt.before)
			var before time.Time
			var batch pgx.Batch
			b.store.QueueWatermark(&batch, "shipping", func(at time.Time) { before = at })

			require.NoError(t, b.Pool.SendBatch(t.Context(), &batch).Close())

			got := "remembered"
			if time.Now().AddDate(0, 0, -1).Before(before) {
				got = "too old"
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// Somebody writes into the settings of one consumer what is none: those of the others
// are read all the same, and of the one it is told.
func TestLoadSettings_ByHand(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	require.NoError(t, b.store.NoteSettings(t.Context(), b.Pool, "shipping", someSettings()))
	for _, settings := range []string{`[]`, `"14d"`, `{"retention": "14d"}`, `{"retention": 1e300}`, `{"workers": 1.5}`} {
		b.exec(t, `UPDATE consumers SET settings = $1, settings_at = now() WHERE name = 'billing'`, settings)

		got, err := b.store.LoadSettings(t.Context(), b.Pool)

		require.NoError(t, err, settings)
		require.Len(t, got, 2)
		require.ErrorContains(t, got[0].Err, `read the settings of consumer "billing": `, settings)
		require.Zero(t, got[0].Settings, settings)
		require.NoError(t, got[1].Err)
		require.Equal(t, someSettings(), got[1].Settings)
	}
	b.exec(t, `UPDATE consumers SET settings = '{"workers": 3}', settings_at = 'infinity' WHERE name = 'billing'`)
	got, err := b.store.LoadSettings(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Equal(t, 3, got[0].Settings.Workers)
	require.NoError(t, b.store.NoteSettings(t.Context(), b.Pool, "billing", someSettings()))
	got, err = b.store.LoadSettings(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Equal(t, someSettings(), got[0].Settings, "the next start puts it right")
}
