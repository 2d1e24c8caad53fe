package doctor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/doctor"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

func TestSchema(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	conn := connect(t, db.URL)
	f, usable := doctor.Schema(t.Context(), conn, db.Schema)
	require.True(t, usable)
	require.Equal(t, doctor.OK, f.Level, f.Found)

	_, err := schema.Down(t.Context(), db.Pool, db.Schema, schema.Version-1)
	require.NoError(t, err)
	f, usable = doctor.Schema(t.Context(), conn, db.Schema)
	require.False(t, usable)
	require.Equal(t, doctor.Problem, f.Level)
	require.Contains(t, f.Found, "run `semel migrate up")

	_, nobody := role(t, db, "")
	f, usable = doctor.Schema(t.Context(), nobody, db.Schema)
	require.False(t, usable)
	require.Equal(t, doctor.Problem, f.Level)

	require.NoError(t, conn.Close(t.Context()))
	f, usable = doctor.Schema(t.Context(), conn, db.Schema)
	require.False(t, usable)
	require.Equal(t, doctor.NotChecked, f.Level, "that says nothing about the tables")
	require.True(t, f.Failed)
}

func TestRights(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		parts []schema.Role
		want  doctor.Level
		found string
	}{
		{name: "Application", parts: []schema.Role{schema.Application}, want: doctor.OK, found: "this role may play application"},
		{name: "Both", parts: []schema.Role{schema.Application, schema.Relay}, want: doctor.OK, found: "this role may play application, relay"},
		{name: "Operator", parts: []schema.Role{schema.Operator}, want: doctor.NotChecked, found: "this role may play operator and not application"},
		{name: "Nothing", want: doctor.Problem, found: "GRANT "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			_, conn := role(t, db, "", tt.parts...)

			f := doctor.Rights(t.Context(), conn, db.Schema)

			require.Equal(t, tt.want, f.Level, f.Found)
			require.Contains(t, f.Found, tt.found)
		})
	}
}
