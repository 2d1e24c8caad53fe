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
	// Application runs consumers, writes events, purges what was handled long ago,
	// and decides on dead letters.
	Application Role = "application"

	// Operator looks at what was handled, what is dead and what was published,
	// and changes nothing.
	Operator Role = "operator"

	// Relay publishes events, and archives and purges what was published.
	Relay Role = "relay"

	// Writer writes events and does nothing else: a service without a consumer, or
	// one in another language that calls outbox_write.
	Writer Role = "writer"
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
	rights, ok := rightsOf[role]
	if !ok {
		return fmt.Errorf("%w %q: it is %s, %s, %s or %s", ErrRole, role, Application, Operator, Relay, Writer)
	}
	fmt.Fprintf(&b, "GRANT USAGE ON SCHEMA %s TO %s;\n", quote(schemaName), quoted)
	for _, r := range rights {
		fmt.Fprintf(&b, "GRANT %s ON %s TO %s;\n", r.privileges, Qualify(r.on(), schemaName), quoted)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// right is an object that a part works on, and how.
type right struct {
	privileges string // "SELECT, INSERT"
	object     string // "outbox", or "shard(text, text)"
	unchecked  bool   // a program of this part can do without: its start check does not ask for it
}

// on is the object as GRANT names it.
func (r right) on() string {
	if strings.HasSuffix(r.object, ")") {
		return "FUNCTION semel." + r.object
	}
	return "semel." + r.object
}

func execute(function string) right {
	return right{privileges: "EXECUTE", object: function, unchecked: true}
}

// rightsOf is what each part needs. Functions may be run by everybody unless a
// careful DBA has taken that away.
var rightsOf = map[Role][]right{
	Application: {
		{privileges: "SELECT", object: "schema_migrations", unchecked: true}, // Check reads it
		{privileges: "SELECT, INSERT", object: "consumers"},
		{privileges: "SELECT, INSERT, UPDATE", object: "processed_messages"},
		{privileges: "SELECT, INSERT, UPDATE", object: "dead_letters"},
		{privileges: "SELECT, INSERT, UPDATE, DELETE", object: "inbox_messages"},
		{privileges: "SELECT, INSERT, UPDATE, DELETE", object: "attempt_journal"},
		{privileges: "SELECT, INSERT, UPDATE", object: "calls", unchecked: true}, // not every application calls
		{privileges: "SELECT, INSERT, UPDATE", object: "key_versions", unchecked: true},
		{privileges: "DELETE", object: "calls", unchecked: true},
		{privileges: "DELETE", object: "key_versions", unchecked: true},
		{privileges: "INSERT", object: "outbox", unchecked: true},             // not every application writes events
		{privileges: "DELETE", object: "processed_messages", unchecked: true}, // nor purges
		{privileges: "DELETE", object: "dead_letters", unchecked: true},
		{privileges: "UPDATE (purged_before, purging_at, settings, settings_at)", object: "consumers", unchecked: true},
		execute("shard(text, text)"),
		execute("outbox_new_id()"),
		execute("outbox_lock(text, text)"),
		execute("outbox_write(text, text, text, jsonb, jsonb, uuid, bigint)"),
		execute("outbox_write_bytes(text, text, text, bytea, jsonb, uuid, bigint)"),
	},
	Writer: {
		{privileges: "INSERT", object: "outbox"},
		execute("shard(text, text)"),
		execute("outbox_new_id()"),
		execute("outbox_lock(text, text)"),
		execute("outbox_write(text, text, text, jsonb, jsonb, uuid, bigint)"),
		execute("outbox_write_bytes(text, text, text, bytea, jsonb, uuid, bigint)"),
	},
	Relay: {
		{privileges: "SELECT", object: "schema_migrations", unchecked: true},
		{privileges: "SELECT, UPDATE, DELETE", object: "outbox"},
		{privileges: "SELECT", object: "outbox_seq_seq"},
		{privileges: "SELECT, INSERT, UPDATE, DELETE", object: "archive_batches", unchecked: true}, // not every relay archives
		{privileges: "SELECT, UPDATE", object: "relay_leases"},
		{privileges: "SELECT, INSERT, UPDATE, DELETE", object: "relays"},
		execute("shard(text, text)"),
	},
	Operator: {
		{privileges: "SELECT", object: "schema_migrations"},
		{privileges: "SELECT", object: "consumers"},
		{privileges: "SELECT", object: "processed_messages"},
		{privileges: "SELECT", object: "dead_letters"},
		{privileges: "SELECT", object: "inbox_messages"},
		{privileges: "SELECT", object: "attempt_journal"},
		{privileges: "SELECT", object: "calls"},
		{privileges: "SELECT", object: "key_versions"},
		{privileges: "SELECT", object: "outbox"},
		{privileges: "SELECT", object: "relays"},
		{privileges: "SELECT", object: "relay_leases"},
		{privileges: "SELECT", object: "archive_batches"},
		{privileges: "SELECT", object: "processed"},
		{privileges: "SELECT", object: "dead"},
		{privileges: "SELECT", object: "events"},
		{privileges: "SELECT", object: "stored"},
		execute("consumer_id(text)"),
		execute("message_id(text)"),
		execute("fingerprint(text, bytea)"),
		execute("outcome_name(smallint)"),
		execute("call_state_name(smallint)"),
		execute("as_text(bytea)"),
		execute("shard(text, text)"),
	},
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
