package schema

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed queries/access.sql
var accessSQL string

// CheckAccess reports whether the database role of db may do with the tables
// what a program of this part does. The error wraps [ErrForbidden] and names
// the GRANT for each missing right. Call [Check] first: it tells whether the
// tables are there at all.
func CheckAccess(ctx context.Context, db DB, schemaName string, role Role) (err error) {
	if err := CheckName(schemaName); err != nil {
		return err
	}
	var relations, privileges []string
	for _, r := range rightsOf[role] {
		if r.unchecked {
			continue
		}
		for privilege := range strings.SplitSeq(r.privileges, ", ") {
			relations, privileges = append(relations, r.object), append(privileges, privilege)
		}
	}
	tx, err := db.Begin(ctx)
	if err != nil {
		return fmt.Errorf("check the rights on schema %s: %w", quote(schemaName), err)
	}
	defer rollback(ctx, tx, &err)

	rows, err := tx.Query(ctx, accessSQL, pgx.QueryExecModeExec, orDefault(schemaName), relations, privileges)
	var grants []string
	if err == nil {
		grants, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return fmt.Errorf("check the rights on schema %s: %w", quote(schemaName), err)
	}
	if len(grants) > 0 {
		return fmt.Errorf("check the rights on schema %s: %w: %s", quote(schemaName), ErrForbidden, strings.Join(grants, "; "))
	}
	return nil
}
