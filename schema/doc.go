// Package schema holds the tables: versioned migrations, embedded, up and
// down, and printable for those who run DDL with a tool of their own.
//
//	applied, err := schema.Up(ctx, pool, schema.Default, 0) // to the newest
//	...
//	err = schema.Check(ctx, pool, schema.Default) // what a program does at start
//
// Table names live here and nowhere else. A query elsewhere says
// "semel.table"; [Qualify] puts the configured schema in, once, when the
// store that runs it is built.
//
// # Rolling deploys
//
// Each migration records the oldest binary that may still run beside it. A
// program refuses to start only where that says so, or where a migration it
// needs is missing; a newer schema alone is no reason. So the tables may be
// migrated before the programs are replaced, and a program may be rolled back
// without its tables.
//
// # Concurrency
//
// Any number of processes may migrate at once: each migration is one
// transaction behind a transaction-level advisory lock on the schema's name,
// which also works behind PgBouncer in transaction mode.
package schema
