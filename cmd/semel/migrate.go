package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/schema"
)

func migrateCommands() []command {
	return []command{
		{name: "up", synopsis: " [flags]", summary: "Apply the migrations that are missing.", do: migrateUp},
		{name: "down", synopsis: " -to VERSION -yes [flags]", summary: "Take migrations back; what they created is dropped.", do: migrateDown},
		{name: "status", synopsis: " [flags]", summary: "Show which migrations are applied.", do: migrateStatus},
		{name: "print", synopsis: " [flags]", summary: "Print the SQL for a DBA to run; needs no database.", do: migratePrint},
		{name: "grants", synopsis: " [flags]", summary: "Print the least rights that database roles need.", do: migrateGrants},
	}
}

func migrateUp(ctx context.Context, c *call) error {
	c.needsDatabase()
	to := c.flags.Int("to", schema.Version, "`version` to go up to")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	if *to < 1 || *to > schema.Version {
		return c.usage("-to %d: the versions to go up to are 1 to %d", *to, schema.Version)
	}
	return c.withDatabase(ctx, func(conn *pgx.Conn) error {
		done, err := schema.Up(ctx, conn, c.schema, *to)
		for _, m := range done {
			fmt.Fprintf(c.stdout, "applied %d %s\n", m.Version, m.Name)
		}
		if err == nil && len(done) == 0 {
			fmt.Fprintf(c.stdout, "schema %q is up to date\n", c.schema)
		}
		return err
	})
}

var errNotConfirmed = errors.New("nothing was done: add -yes to do it")

func migrateDown(ctx context.Context, c *call) error {
	c.needsDatabase()
	to := c.flags.Int("to", -1, "`version` to go down to, 0 to drop everything")
	yes := c.flags.Bool("yes", false, "do it; without it only show what would be dropped")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	if *to < 0 || *to >= schema.Version {
		return c.usage("say with -to how far to go down: 0 (drop everything) to %d", schema.Version-1)
	}
	return c.withDatabase(ctx, func(conn *pgx.Conn) error {
		migrations, err := schema.Status(ctx, conn, c.schema)
		if err != nil {
			return err
		}
		at := 0
		for _, m := range migrations {
			if m.Applied {
				at = m.Version
			}
		}
		if at <= *to {
			fmt.Fprintf(c.stdout, "schema %q is at version %d already\n", c.schema, at)
			return nil
		}
		if at <= schema.Version { // else Down refuses, and says why
			if err := c.printDrops(at, *to); err != nil {
				return err
			}
			if !*yes {
				return errNotConfirmed
			}
		}
		done, err := schema.Down(ctx, conn, c.schema, *to)
		for _, m := range done {
			fmt.Fprintf(c.stdout, "took back %d %s\n", m.Version, m.Name)
		}
		return err
	})
}

// printDrops shows what going down destroys.
func (c *call) printDrops(from, to int) error {
	var sql strings.Builder
	if err := schema.Print(&sql, c.schema, from, to); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "going down from version %d to %d drops, with all rows:\n", from, to)
	table := "" // whose columns the lines that follow drop
	for line := range strings.Lines(sql.String()) {
		line = strings.TrimRight(line, ",;\n")
		if name, ok := strings.CutPrefix(line, "ALTER TABLE "); ok {
			table = name
		} else if column, ok := strings.CutPrefix(line, "    DROP COLUMN "); ok {
			fmt.Fprintf(c.stdout, "  column %s.%s\n", table, column)
		} else if what, ok := strings.CutPrefix(line, "DROP "); ok {
			kind, name, _ := strings.Cut(what, " ")
			fmt.Fprintf(c.stdout, "  %s %s\n", strings.ToLower(kind), name)
		}
	}
	return nil
}

func migrateStatus(ctx context.Context, c *call) error {
	c.needsDatabase()
	asJSON := c.flags.Bool("json", false, "print JSON")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(conn *pgx.Conn) error {
		migrations, err := schema.Status(ctx, conn, c.schema)
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(c.stdout, migrationObjects(migrations))
		}
		t := newTable(c.stdout, "VERSION", "NAME", "OLDEST BINARY", "APPLIED")
		for _, m := range migrations {
			applied := "not yet"
			switch {
			case !m.AppliedAt.IsZero():
				applied = when(m.AppliedAt)
			case m.Applied:
				applied = "nobody knows when"
			}
			t.row(m.Version, m.Name, m.OldestBinary, applied)
		}
		if err := t.flush(); err != nil {
			return err
		}
		return c.printNewer(ctx, conn, migrations[len(migrations)-1].Version)
	})
}

// printNewer says what it means for programs of this version that the schema
// is newer.
func (c *call) printNewer(ctx context.Context, conn *pgx.Conn, newest int) error {
	if newest <= schema.Version {
		return nil
	}
	err := schema.Check(ctx, conn, c.schema)
	switch {
	case err == nil:
		fmt.Fprintf(c.stdout, "\nnewer than this program, which is built for version %d and may run on it\n", schema.Version)
	case errors.Is(err, schema.ErrTooNew):
		fmt.Fprintf(c.stdout, "\nnewer than this program, which is built for version %d and must not run on it: deploy a newer one\n", schema.Version)
		err = nil // it is shown, and nothing went wrong
	}
	return err
}

func migrationObjects(migrations []schema.Migration) []object {
	objects := make([]object, 0, len(migrations))
	for _, m := range migrations {
		o := object{"version": m.Version, "name": m.Name, "oldest_binary": m.OldestBinary, "applied": m.Applied, "applied_at": nil}
		if !m.AppliedAt.IsZero() {
			o["applied_at"] = m.AppliedAt.UTC().Format(time.RFC3339Nano)
		}
		objects = append(objects, o)
	}
	return objects
}

func migratePrint(_ context.Context, c *call) error {
	down := c.flags.Bool("down", false, "print the way down, from the newest version")
	from := c.flags.Int("from", -1, "`version` the schema is at (default 0, with -down the newest)")
	to := c.flags.Int("to", -1, "`version` to go to (default the newest, with -down 0)")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	first, last := 0, schema.Version
	if *down {
		first, last = last, first
	}
	if *from >= 0 {
		first = *from
	}
	if *to >= 0 {
		last = *to
	}
	if max(first, last) > schema.Version || (first > last) != *down && first != last {
		return c.usage("there is no way %s from version %d to %d; the newest is %d", map[bool]string{false: "up", true: "down"}[*down], first, last, schema.Version)
	}
	return schema.Print(c.stdout, c.schema, first, last)
}

func migrateGrants(_ context.Context, c *call) error {
	parts := []struct {
		role schema.Role
		does string
		name *string
	}{
		{role: schema.Application, does: "runs consumers and writes events"},
		{role: schema.Operator, does: "looks at what was handled, what is dead and what is to be published"},
		{role: schema.Relay, does: "publishes events"},
		{role: schema.Writer, does: "writes events and does nothing else"},
	}
	for i, p := range parts {
		parts[i].name = c.flags.String(string(p.role), "", "the `role` that "+p.does)
	}
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	var sql strings.Builder
	for _, p := range parts {
		if *p.name == "" {
			continue
		}
		if err := schema.Grants(&sql, c.schema, p.role, *p.name); err != nil {
			return c.usage("-%s: %s", p.role, err)
		}
	}
	if sql.Len() == 0 {
		return c.usage("name a database role: -application, -operator, -relay or -writer")
	}
	_, err := io.WriteString(c.stdout, sql.String())
	return err
}
