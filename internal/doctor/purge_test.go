package doctor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/doctor"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

// handled writes down that a consumer handled a message so many days ago.
func handled(t *testing.T, db *pgtest.DB, consumer, id string, outcome, days int) {
	t.Helper()
	exec(t, db, `INSERT INTO processed_messages (consumer_id, message_id, message_text, outcome, processed_at)
		VALUES (consumer_id($1), message_id($2), $2, $3, now() - make_interval(days => $4))`, consumer, id, outcome, days)
}

func TestPurges(t *testing.T) {
	t.Parallel()

	const overdue = "it has not purged for a day, and there is what was handled more than 15d ago"
	tests := []struct {
		name      string
		retention time.Duration
		setup     func(t *testing.T, db *pgtest.DB)
		want      doctor.Level
		found     string
	}{
		{name: "Empty", retention: 14 * day, want: doctor.OK, found: "nothing is much older"},
		{name: "ForEver", retention: -1, want: doctor.OK, found: "it purges nothing", setup: func(t *testing.T, db *pgtest.DB) {
			handled(t, db, "shipping", "old", 1, 400)
		}},
		{name: "Young", retention: 14 * day, want: doctor.OK, found: "nothing is much older", setup: func(t *testing.T, db *pgtest.DB) {
			handled(t, db, "shipping", "young", 1, 14)
			handled(t, db, "billing", "old", 1, 30)
		}},
		{name: "Never", retention: 14 * day, want: doctor.Warning, found: overdue, setup: func(t *testing.T, db *pgtest.DB) {
			handled(t, db, "shipping", "old", 1, 16)
		}},
		{name: "Lately", retention: 14 * day, want: doctor.OK, found: "in the last day", setup: func(t *testing.T, db *pgtest.DB) {
			handled(t, db, "shipping", "old", 1, 16)
			exec(t, db, `UPDATE consumers SET purging_at = now() - interval '23 hours'`)
		}},
		{name: "NotForADay", retention: 14 * day, want: doctor.Warning, found: overdue, setup: func(t *testing.T, db *pgtest.DB) {
			handled(t, db, "shipping", "old", 1, 16)
			exec(t, db, `UPDATE consumers SET purging_at = now() - interval '25 hours'`)
		}},
		{name: "MustStay", retention: 14 * day, want: doctor.OK, found: "nothing is much older", setup: func(t *testing.T, db *pgtest.DB) {
			handled(t, db, "shipping", "stored", 4, 30)
			handled(t, db, "shipping", "dead", 5, 30)
			handled(t, db, "shipping", "mismatch", 1, 30)
			exec(t, db, `INSERT INTO dead_letters (consumer_id, message_id, reason) VALUES (consumer_id('shipping'), message_id('dead'), 'exhausted')`)
			exec(t, db, `INSERT INTO dead_letters (consumer_id, message_id, reason, fingerprint) VALUES (consumer_id('shipping'), message_id('mismatch'), 'mismatch', 1)`)
		}},
		{name: "Decided", retention: 14 * day, want: doctor.Warning, found: overdue, setup: func(t *testing.T, db *pgtest.DB) {
			handled(t, db, "shipping", "dead", 5, 30)
			exec(t, db, `INSERT INTO dead_letters (consumer_id, message_id, reason, state) VALUES (consumer_id('shipping'), message_id('dead'), 'exhausted', 'discarded')`)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			require.NoError(t, dedup.NewStore(db.Schema).Register(t.Context(), db.Pool, "shipping"))
			if tt.setup != nil {
				tt.setup(t, db)
			}
			_, conn := role(t, db, "", schema.Operator)

			findings := doctor.Purges(t.Context(), conn, db.Schema, remembering(tt.retention))

			require.Len(t, findings, 1)
			require.Equal(t, tt.want, findings[0].Level, findings[0].Found)
			require.Contains(t, findings[0].Found, tt.found)
			if tt.want == doctor.Warning {
				require.Contains(t, findings[0].Do, "semel inbox purge -older 14d -yes")
			}
		})
	}
}

// The age in the command is one that it takes.
func TestPurges_OddRetention(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	handled(t, db, "shipping", "old", 1, 30)

	findings := doctor.Purges(t.Context(), connect(t, db.URL), db.Schema, remembering(36*time.Hour))
	require.Equal(t, doctor.Warning, findings[0].Level)
	require.Contains(t, findings[0].Do, "semel inbox purge -older 36h0m0s -yes")
}

func TestPurges_Forbidden(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	_, conn := role(t, db, "", schema.Relay)

	findings := doctor.Purges(t.Context(), conn, db.Schema, remembering(14*day))
	require.Equal(t, doctor.NotChecked, findings[0].Level)
	require.False(t, findings[0].Failed)
	require.Contains(t, findings[0].Found, "permission denied")

	require.NoError(t, conn.Close(t.Context()))
	findings = doctor.Purges(t.Context(), conn, db.Schema, remembering(14*day))
	require.Equal(t, doctor.NotChecked, findings[0].Level)
	require.True(t, findings[0].Failed, "a connection that is gone is something else")
}
