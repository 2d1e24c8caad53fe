package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/schema"
)

const (
	schemaCheck = "schema"
	rightsCheck = "rights"
)

// Schema tells whether this version's programs find the tables they need. Without
// them there is no sense in the checks of tables.
func Schema(ctx context.Context, db DB, schemaName string) (finding Finding, usable bool) {
	err := schema.Check(ctx, db, schemaName)
	if err == nil {
		return Finding{Check: schemaCheck, Level: OK, Found: fmt.Sprintf("the tables are those of version %d or newer", schema.Version)}, true
	}
	if !errors.Is(err, schema.ErrOutdated) && !errors.Is(err, schema.ErrTooNew) && !errors.Is(err, schema.ErrForbidden) {
		return Unread(schemaCheck, "", err), false
	}
	return Finding{
		Check: schemaCheck, Level: Problem, Found: err.Error(),
		Why: "programs of this version do not start", Do: "see semel migrate status and semel migrate grants",
	}, false
}

// Rights tells which parts the role may play that looks: to look from the
// application's role is to know that the application may.
func Rights(ctx context.Context, db DB, schemaName string) Finding {
	f := Finding{Check: rightsCheck, Level: OK}
	var may []string
	lacks := map[schema.Role]error{}
	for _, part := range []schema.Role{schema.Application, schema.Relay, schema.Operator} {
		err := schema.CheckAccess(ctx, db, schemaName, part)
		if err == nil {
			may = append(may, string(part))
			continue
		}
		if !errors.Is(err, schema.ErrForbidden) {
			return Unread(rightsCheck, "", err)
		}
		lacks[part] = err
	}
	f.Found = "this role may play " + strings.Join(may, ", ")
	switch {
	case slices.Contains(may, string(schema.Application)):
	case len(may) > 0:
		f.Level = NotChecked
		f.Found += " and not application"
		f.Why = "whether the application's role has its rights cannot be seen from here"
		f.Do = "look with the application's connection string too"
	default:
		f.Level = Problem
		f.Found = lacks[schema.Application].Error()
		f.Why = "a program with this role does not start"
		f.Do = "run what semel migrate grants prints"
	}
	return f
}
