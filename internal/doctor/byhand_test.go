package doctor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/doctor"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

// Settings of one consumer that cannot be read are told of that one, and those of
// the others are looked at.
func TestSettings_ByHand(t *testing.T) {
	t.Parallel()

	errText := errors.New("read the settings of consumer \"billing\": no number")
	consumers := doctor.Consumers([]dedup.ConsumerSettings{
		{Consumer: "billing", NotedAt: time.Now(), Err: errText},
		{Consumer: "mails", Settings: dedup.Settings{Workers: 8}}, // noted at infinity
		{Consumer: "shipping", NotedAt: time.Now(), Settings: shipping().Settings},
	}, "", 0)

	findings := doctor.Settings(consumers)

	require.Len(t, findings, 1)
	require.Equal(t, "billing", findings[0].Consumer)
	require.Equal(t, doctor.NotChecked, findings[0].Level)
	require.Equal(t, errText.Error(), findings[0].Found)
	require.True(t, findings[0].Failed)
	require.Len(t, doctor.Retries(consumers), 1)
}

// Somebody sets by hand since when events are on their way to the archive: that they
// hang is told all the same.
func TestArchive_ByHand(t *testing.T) {
	t.Parallel()

	for at, want := range map[string]string{
		"-infinity":        `for \d{4,5}d`,
		"0044-03-15 BC":    `for \d{4,5}d`,
		"4713-01-01 BC":    `for \d{4,5}d`,
		"infinity":         "since a time ahead of the clock, set by hand",
		"20000-01-01":      "since a time ahead of the clock, set by hand",
		"2020-01-01 00:00": `for \d{4}d`,
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			_, err := db.Pool.Exec(t.Context(), `INSERT INTO archive_batches (id, archived_at, retain_until, first_seq, last_seq, events, object, sha256, event_ids)
				VALUES (gen_random_uuid(), $1::text::timestamptz, now(), 1, 9, 9, 'a/b.jsonl.gz', '', '{}')`, at)
			require.NoError(t, err)
			_, conn := role(t, db, "", schema.Operator)

			findings := doctor.Archive(t.Context(), conn, db.Schema)

			require.Len(t, findings, 1)
			require.Equal(t, doctor.Warning, findings[0].Level)
			require.Regexp(t, "9 events have been on their way there "+want, findings[0].Found)
		})
	}
}

// What somebody has dated by hand before all times no purge deletes: it is no sign of
// one that does not run.
func TestPurges_DatedByHand(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	require.NoError(t, dedup.NewStore(db.Schema).Register(t.Context(), db.Pool, "shipping"))
	_, err := db.Pool.Exec(t.Context(), `INSERT INTO processed_messages (consumer_id, message_id, outcome, processed_at)
		VALUES (consumer_id('shipping'), gen_random_uuid(), 1, '-infinity'), (consumer_id('shipping'), gen_random_uuid(), 1, '0044-03-15 BC')`)
	require.NoError(t, err)
	_, conn := role(t, db, "", schema.Operator)

	findings := doctor.Purges(t.Context(), conn, db.Schema, []doctor.Consumer{shipping()})

	require.Equal(t, []doctor.Level{doctor.OK}, levels(findings))
}
