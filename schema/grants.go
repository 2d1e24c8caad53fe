package schema

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// Role is a part that a database role plays. It gets the rights of that part
// and no others.
type Role string

// The parts there are.
const (
	// Application runs consumers.
	Application Role = "application"

	// Operator looks at what was handled and what is dead, and changes nothing.
	Operator Role = "operator"

	// Relay publishes events. There are no tables for it yet, so it gets nothing.
	Relay Role = "relay"
)

// ErrRole is returned by [Grants] for a part that there is not, and for a name
// that cannot be a database role's.
var ErrRole = errors.New("impossible role")

// Grants writes the GRANT statements by which the database role of this name
// may play a part in a schema. The role must exist. A role may play several
// parts. After a migration run them anew: it may have brought tables.
//
// None of these roles may change or drop the tables, so migrations are run by
// another one, their owner.
func Grants(w io.Writer, schemaName string, role Role, name string) error {
	if err := CheckName(schemaName); err != nil {
		return err
	}
	if err := checkRoleName(name); err != nil {
		return err
	}
	quoted := pgx.Identifier{name}.Sanitize()
	var b strings.Builder
	fmt.Fprintf(&b, "-- What the %s needs, at schema version %d.\n", role, Version)
	switch role {
	case Application, Operator:
		fmt.Fprintf(&b, "GRANT USAGE ON SCHEMA %s TO %s;\n", quote(schemaName), quoted)
		for _, right := range role.rights() {
			fmt.Fprintf(&b, "GRANT %s TO %s;\n", Qualify(right, schemaName), quoted)
		}
	case Relay:
		fmt.Fprintf(&b, "-- Nothing yet: there are no tables for it. %s is given no right.\n", quoted)
	default:
		return fmt.Errorf("%w %q: it is %s, %s or %s", ErrRole, role, Application, Operator, Relay)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rights are the objects a part works on, and how. No part needs DELETE.
func (r Role) rights() []string {
	if r == Application { // what queries/access.sql asks for, and what Check reads
		return []string{
			"SELECT ON semel.schema_migrations",
			"SELECT, INSERT ON semel.consumers",
			"SELECT, INSERT, UPDATE ON semel.processed_messages",
			"SELECT, INSERT, UPDATE ON semel.dead_letters",
		}
	}
	return []string{
		"SELECT ON semel.schema_migrations",
		"SELECT ON semel.consumers",
		"SELECT ON semel.processed_messages",
		"SELECT ON semel.dead_letters",
		"SELECT ON semel.processed",
		"SELECT ON semel.dead",
		// Everybody may run them unless a careful DBA has taken that away.
		"EXECUTE ON FUNCTION semel.consumer_id(text)",
		"EXECUTE ON FUNCTION semel.message_id(text)",
		"EXECUTE ON FUNCTION semel.fingerprint(text, bytea)",
		"EXECUTE ON FUNCTION semel.outcome_name(smallint)",
		"EXECUTE ON FUNCTION semel.as_text(bytea)",
	}
}

func checkRoleName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: its name is empty", ErrRole)
	case len(name) > maxName:
		return fmt.Errorf("%w %.80q: %d bytes, PostgreSQL allows %d", ErrRole, name, len(name), maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w %q: it must be text without control characters", ErrRole, name)
	case name == "public", name == "none": // reserved, in quotes too
		return fmt.Errorf("%w %q: to PostgreSQL this is no role but everybody or nobody", ErrRole, name)
	}
	return nil
}
