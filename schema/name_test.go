package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/schema"
)

func TestQualify(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, sql, schema, want string
	}{
		{name: "Default", sql: "SELECT semel.f(a) FROM semel.t", want: `SELECT "semel".f(a) FROM "semel".t`},
		{name: "Quoted", sql: "FROM semel.t", schema: `a "b`, want: `FROM "a ""b".t`},
		{name: "OnlyWholeWords", sql: "FROM xsemel.t, x_semel.t, semelx.t", schema: "s", want: "FROM xsemel.t, x_semel.t, semelx.t"},
		{name: "NotInLiterals", sql: "'semel.a' 'it''s semel.a' semel.b", schema: "s", want: `'semel.a' 'it''s semel.a' "s".b`},
		{name: "NotInComments", sql: "-- it's semel.a\nFROM semel.b -- semel.c", schema: "s\nDROP", want: "-- it's semel.a\nFROM \"s\nDROP\".b -- semel.c"},
		{name: "NotInQuotedNames", sql: `"semel.a" semel.b`, schema: "s", want: `"semel.a" "s".b`},
		{name: "InFunctionBodies", sql: "AS $$ SELECT semel.f() $$", schema: "s", want: `AS $$ SELECT "s".f() $$`},
		{name: "Twice", sql: "semel.a", schema: "semel", want: `"semel".a`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.want, schema.Qualify(tt.sql, tt.schema))
		})
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, schema, want string
	}{
		{name: "Empty", schema: ""},
		{name: "Longest", schema: strings.Repeat("x", 63)},
		{name: "Strange", schema: `é "quoted'; --`},
		{name: "TooLong", schema: strings.Repeat("x", 64), want: "64 bytes, PostgreSQL allows 63"},
		{name: "TooLongInBytes", schema: strings.Repeat("é", 32), want: "64 bytes"},
		{name: "NUL", schema: "a\x00b", want: `"a\x00b": it holds a control character`},
		{name: "Newline", schema: "a\nb", want: "it holds a control character"},
		{name: "NotUTF8", schema: "a\xff", want: "not UTF-8"},
		{name: "Reserved", schema: "pg_semel", want: "the prefix pg_"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			err := schema.CheckName(tt.schema)

			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, schema.ErrName)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
