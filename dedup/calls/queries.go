package calls

import (
	_ "embed"

	"github.com/semel-go/semel/schema"
)

//go:embed queries/take.sql
var takeSQL string

//go:embed queries/intend.sql
var intendSQL string

//go:embed queries/finish.sql
var finishSQL string

//go:embed queries/give_back.sql
var giveBackSQL string

//go:embed queries/result.sql
var resultSQL string

// queries are the statements of one schema.
type queries struct{ take, intend, finish, giveBack, result string }

func newQueries(schemaName string) queries {
	return queries{
		take:     schema.Qualify(takeSQL, schemaName),
		intend:   schema.Qualify(intendSQL, schemaName),
		finish:   schema.Qualify(finishSQL, schemaName),
		giveBack: schema.Qualify(giveBackSQL, schemaName),
		result:   schema.Qualify(resultSQL, schemaName),
	}
}
