package dedup_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
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

// Somebody dates records by hand to what is no time of ours. Nobody knows how old they
// are, and what is deleted runs a second time: they stay, and others do not.
func TestPurge_DatedByHand(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	for _, at := range []string{"-infinity", "0044-03-15 BC", "0001-01-01", "infinity", "20000-01-01"} {
		b.add(t, "shipping", at, 1, 40)
		b.exec(t, `UPDATE processed_messages SET processed_at = $1::text::timestamptz WHERE message_text = $1`, at)
		b.addCall(t, "billing", at, "pay", "done", 40)
		b.exec(t, `UPDATE calls SET updated_at = $1::text::timestamptz WHERE message_text = $1`, at)
		b.exec(t, `INSERT INTO key_versions (consumer_id, key_id, key, message_id, version, known_from, updated_at)
			VALUES (consumer_id('shipping'), message_id($1), '', message_id($1), 1, 1, $1::timestamptz)`, at)
	}
	b.add(t, "shipping", "old", 1, 40)
	b.addCall(t, "billing", "old", "pay", "done", 40)
	b.exec(t, `INSERT INTO key_versions (consumer_id, key_id, key, message_id, version, known_from, updated_at)
		VALUES (consumer_id('shipping'), message_id('old'), '', message_id('old'), 1, 1, now() - interval '40 days')`)

	for what, purge := range map[string]func() (int64, error){
		"messages": func() (int64, error) { return b.store.Purge(t.Context(), b.Pool, month, dedup.PurgeConfig{}) },
		"calls":    func() (int64, error) { return b.store.PurgeCalls(t.Context(), b.Pool, month, dedup.PurgeConfig{}) },
		"versions": func() (int64, error) {
			return b.store.PurgeVersions(t.Context(), b.Pool, month, dedup.PurgeConfig{})
		},
	} {
		deleted, err := purge()
		require.NoError(t, err, what)
		require.Equal(t, int64(1), deleted, what)
	}
	require.Len(t, b.left(t), 5)
	require.Len(t, b.callsLeft(t), 5)
}

// Somebody writes into the gaps of an entity what leaves no room to count: a statement
// that fails would count as a database that is away, and all messages of the consumer
// would wait for it.
func TestVersionGuard_GapsByHand(t *testing.T) {
	t.Parallel()

	for _, gaps := range []string{"9223372036854775807", "-9223372036854775808"} {
		t.Run(gaps, func(t *testing.T) {
			t.Parallel()

			b := setupGuard(t)
			h := b.store.VersionGuard(dedup.GuardConfig{CountGaps: true})(noteRun)
			b.sends(t, h, 2, handler.Processed)
			byHand := func() {
				_, err := b.Pool.Exec(t.Context(), `UPDATE key_versions SET gaps = `+gaps)
				require.NoError(t, err)
			}
			byHand()
			b.sends(t, h, 9, handler.Processed)
			byHand()
			b.sends(t, h, 5, handler.Superseded)

			require.Equal(t, int64(9), b.knows(t).Version)
		})
	}
}
