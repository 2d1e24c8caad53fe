package schema_test

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/semel-go/semel/schema"
)

// The SQL for a DBA to read and run, up or down. Of what makes the first tables
// these are some lines.
func ExamplePrint() {
	var sql strings.Builder
	if err := schema.Print(&sql, "shop", 0, 1); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(sql.String()) {
		if strings.HasPrefix(line, "CREATE TABLE") {
			fmt.Print(line)
		}
	}
	// Output:
	// CREATE TABLE "shop".schema_migrations (
	// CREATE TABLE "shop".consumers (
	// CREATE TABLE "shop".processed_messages (
	// CREATE TABLE "shop".dead_letters (
}

// The rights of the people on call: they see what is dead and change nothing.
func ExampleGrants() {
	if err := schema.Grants(os.Stdout, schema.Default, schema.Operator, "oncall"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// -- What the operator needs, at schema version 7.
	// GRANT USAGE ON SCHEMA "semel" TO "oncall";
	// GRANT SELECT ON "semel".schema_migrations TO "oncall";
	// GRANT SELECT ON "semel".consumers TO "oncall";
	// GRANT SELECT ON "semel".processed_messages TO "oncall";
	// GRANT SELECT ON "semel".dead_letters TO "oncall";
	// GRANT SELECT ON "semel".inbox_messages TO "oncall";
	// GRANT SELECT ON "semel".attempt_journal TO "oncall";
	// GRANT SELECT ON "semel".calls TO "oncall";
	// GRANT SELECT ON "semel".key_versions TO "oncall";
	// GRANT SELECT ON "semel".outbox TO "oncall";
	// GRANT SELECT ON "semel".relays TO "oncall";
	// GRANT SELECT ON "semel".relay_leases TO "oncall";
	// GRANT SELECT ON "semel".archive_batches TO "oncall";
	// GRANT SELECT ON "semel".processed TO "oncall";
	// GRANT SELECT ON "semel".dead TO "oncall";
	// GRANT SELECT ON "semel".events TO "oncall";
	// GRANT SELECT ON "semel".stored TO "oncall";
	// GRANT EXECUTE ON FUNCTION "semel".consumer_id(text) TO "oncall";
	// GRANT EXECUTE ON FUNCTION "semel".message_id(text) TO "oncall";
	// GRANT EXECUTE ON FUNCTION "semel".fingerprint(text, bytea) TO "oncall";
	// GRANT EXECUTE ON FUNCTION "semel".outcome_name(smallint) TO "oncall";
	// GRANT EXECUTE ON FUNCTION "semel".call_state_name(smallint) TO "oncall";
	// GRANT EXECUTE ON FUNCTION "semel".as_text(bytea) TO "oncall";
	// GRANT EXECUTE ON FUNCTION "semel".shard(text, text) TO "oncall";
}

// Queries say "semel.table", wherever the tables are.
func ExampleQualify() {
	fmt.Println(schema.Qualify(`SELECT count(*) FROM semel.dead`, "shop"))
	// Output:
	// SELECT count(*) FROM "shop".dead
}
