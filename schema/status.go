package schema

import (
	"context"
	"fmt"
)

// Status returns every migration that this binary knows or that was applied,
// oldest first.
func Status(ctx context.Context, db DB, schemaName string) ([]Migration, error) {
	if err := CheckName(schemaName); err != nil {
		return nil, err
	}
	all, err := embedded()
	if err != nil {
		return nil, err
	}
	applied, err := look(ctx, db, schemaName)
	if err != nil {
		return nil, err
	}
	for _, m := range applied {
		if m.Version >= 1 && m.Version <= len(all) {
			all[m.Version-1].Applied, all[m.Version-1].AppliedAt = true, m.AppliedAt
			continue
		}
		all = append(all, m)
	}
	return all, nil
}

// Check reports whether this binary can run on the schema. A program calls it
// at start. The error wraps [ErrOutdated], [ErrTooNew] or [ErrForbidden] and
// says what to do. A newer schema is fine unless one of its migrations says
// otherwise.
func Check(ctx context.Context, db DB, schemaName string) error {
	if err := CheckName(schemaName); err != nil {
		return err
	}
	applied, err := look(ctx, db, schemaName)
	if err != nil {
		return err
	}
	if last := newest(applied); last < Version {
		state := fmt.Sprintf("it is at version %d", last)
		if last == 0 {
			state = "it has no tables"
		}
		return fmt.Errorf("check schema %s: %w: %s, version %d is needed: run `semel migrate up%s`",
			quote(schemaName), ErrOutdated, state, Version, schemaFlag(schemaName))
	}
	for _, m := range applied {
		if m.OldestBinary > Version {
			return fmt.Errorf("check schema %s: %w: migration %d (%s) needs a program built for version %d or newer, this one is built for %d: deploy a newer one",
				quote(schemaName), ErrTooNew, m.Version, m.Name, m.OldestBinary, Version)
		}
	}
	return nil
}

// look reads the applied migrations in a transaction of its own.
func look(ctx context.Context, db DB, schemaName string) (applied []Migration, err error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at schema %s: %w", quote(schemaName), err)
	}
	defer rollback(ctx, tx, &err)
	if applied, err = readApplied(ctx, tx, schemaName); err != nil {
		return nil, fmt.Errorf("look at schema %s: %w", quote(schemaName), err)
	}
	return applied, nil
}

// schemaFlag is how the command line is told the schema.
func schemaFlag(schemaName string) string {
	if orDefault(schemaName) == Default {
		return ""
	}
	return fmt.Sprintf(" -schema %q", schemaName)
}
