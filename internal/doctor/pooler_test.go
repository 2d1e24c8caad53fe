package doctor_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/doctor"
	"github.com/semel-go/semel/internal/pgtest"
)

func TestFindPooler(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	tests := []struct {
		name string
		url  func(t *testing.T) string
		want doctor.Pooler
	}{
		{name: "None", url: func(*testing.T) string { return db.URL }},
		{name: "Session", url: func(t *testing.T) string { return db.SessionPgBouncer(t) }, want: doctor.Pooler{Between: true}},
		{name: "Transaction", url: func(t *testing.T) string { return db.PgBouncer(t) }, want: doctor.Pooler{Between: true, Loses: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			url := tt.url(t)
			for range 3 { // what was prepared before must not be in the way
				first, second := connect(t, url), connect(t, url)

				got, err := doctor.FindPooler(t.Context(), first, second)

				require.NoError(t, err)
				require.Equal(t, tt.want, got)
				require.NoError(t, first.Close(t.Context()))
				require.NoError(t, second.Close(t.Context()))
			}
		})
	}
}

func TestFindPooler_Unreadable(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	first, second := connect(t, db.URL), connect(t, db.URL)
	require.NoError(t, first.Close(t.Context()))

	_, err := doctor.FindPooler(t.Context(), first, second)
	require.ErrorContains(t, err, "look for a pooler before the database")
}

func TestPooler_Check(t *testing.T) {
	t.Parallel()

	const relies = pgx.QueryExecModeCacheStatement
	loses := doctor.Pooler{Between: true, Loses: true}
	require.Equal(t, doctor.OK, doctor.Pooler{}.Check(relies).Level)
	require.Equal(t, doctor.OK, doctor.Pooler{Between: true}.Check(relies).Level)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		require.Equal(t, doctor.OK, loses.Check(mode).Level, mode)
	}
	f := loses.Check(relies)
	require.Equal(t, doctor.Problem, f.Level)
	require.Contains(t, f.Do, "default_query_exec_mode=cache_describe")
	require.Contains(t, f.Do, "max_prepared_statements")
}
