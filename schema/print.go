package schema

import (
	"fmt"
	"io"
	"strings"
)

// Print writes the SQL that brings a schema from one version to another, up or
// down, for a DBA to read and run: plain statements, one transaction for each
// migration, with the bookkeeping that [Check] reads.
func Print(w io.Writer, schemaName string, from, to int) error {
	if err := CheckName(schemaName); err != nil {
		return err
	}
	if min(from, to) < 0 || max(from, to) > Version {
		return fmt.Errorf("print migrations of schema %s from version %d to %d: this program knows versions 0 to %d", quote(schemaName), from, to, Version)
	}
	known, err := embedded()
	if err != nil {
		return err
	}
	var b strings.Builder
	for v := from + 1; v <= to; v++ {
		printUp(&b, known[v-1], schemaName)
	}
	for v := from; v > to; v-- {
		printDown(&b, known[v-1], schemaName)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func printUp(b *strings.Builder, m Migration, schemaName string) {
	fmt.Fprintf(b, "-- Migration %d: %s\n\nBEGIN;\n\n%s\n", m.Version, m.Name, lockStatement(schemaName))
	if m.Version == 1 {
		fmt.Fprintf(b, "CREATE SCHEMA IF NOT EXISTS %s;\n", quote(schemaName))
	}
	record := Qualify("INSERT INTO semel.schema_migrations (version, name, oldest_binary)\nVALUES", schemaName)
	fmt.Fprintf(b, "\n%s\n%s (%d, '%s', %d);\n\nCOMMIT;\n", Qualify(m.up, schemaName), record, m.Version, m.Name, m.OldestBinary)
}

func printDown(b *strings.Builder, m Migration, schemaName string) {
	record := Qualify("DELETE FROM semel.schema_migrations WHERE version =", schemaName)
	fmt.Fprintf(b, "-- Takes back migration %d: %s\n\nBEGIN;\n\n%s\n%s %d;\n\n%s\nCOMMIT;\n",
		m.Version, m.Name, lockStatement(schemaName), record, m.Version, Qualify(m.down, schemaName))
}

func lockStatement(schemaName string) string {
	return fmt.Sprintf("SELECT pg_advisory_xact_lock(%d);", lockKey(schemaName))
}
