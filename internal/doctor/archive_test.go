package doctor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/doctor"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

func TestArchive(t *testing.T) {
	t.Parallel()

	const filled = `INSERT INTO archive_batches (id, archived_at, retain_until, first_seq, last_seq, events, object, sha256, event_ids, verified_at, done_at)
		VALUES (gen_random_uuid(), clock_timestamp() - $1::interval, now(), 1, 9, 9, 'a/b.jsonl.gz', '', '{}', CASE WHEN $2 THEN now() END, CASE WHEN $3 THEN now() END)`
	tests := []struct {
		name           string
		age            string // empty: it is only begun
		verified, done bool
		want           string // empty: no finding
	}{
		{name: "Nothing"},
		{name: "Lately", age: "11 hours"},
		{name: "Done", age: "3 days", verified: true, done: true},
		{name: "Hangs", age: "3 days", want: "it was not written, or is not right"},
		{name: "HangsVerified", age: "13 hours", verified: true, want: "it was right, and its events are not all deleted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			var err error
			if tt.age == "" {
				_, err = db.Pool.Exec(t.Context(), `INSERT INTO archive_batches (id, begun_at) VALUES (gen_random_uuid(), '2026-01-01')`)
			} else {
				_, err = db.Pool.Exec(t.Context(), filled, tt.age, tt.verified, tt.done)
			}
			require.NoError(t, err)
			_, conn := role(t, db, "", schema.Operator)

			findings := doctor.Archive(t.Context(), conn, db.Schema)

			if tt.want == "" {
				require.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			require.Equal(t, doctor.Warning, findings[0].Level)
			require.Equal(t, "a/b.jsonl.gz", findings[0].Object)
			require.Contains(t, findings[0].Found, "9 events have been on their way there for ")
			require.Contains(t, findings[0].Found, tt.want)
		})
	}
}

func TestArchive_Forbidden(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	_, conn := role(t, db, "", schema.Application)

	findings := doctor.Archive(t.Context(), conn, db.Schema)

	require.Len(t, findings, 1)
	require.Equal(t, doctor.NotChecked, findings[0].Level)
	require.Contains(t, findings[0].Found, "permission denied")
}
