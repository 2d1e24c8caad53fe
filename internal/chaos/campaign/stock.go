package campaign

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/schema"
)

//go:embed queries/stock.sql
var stockSQL string

//go:embed queries/mend_late.sql
var mendLateSQL string

// store is the schema of one group.
type store struct {
	pool *pgxpool.Pool
	name string
}

// stock is how much the tables hold of what is not over yet.
type stock struct {
	delayed   int // wait in the inbox for a later attempt, for long
	stored    int // are in the inbox for another reason
	suspected int // have an attempt in the journal
	undecided int // dead letters that wait for a person, or for their replay
}

// String is for people.
func (s stock) String() string {
	return fmt.Sprintf("of the inbox %d are delayed and %d wait or run, %d are in the journal, %d dead letters are undecided",
		s.delayed, s.stored, s.suspected, s.undecided)
}

func (s store) stock(ctx context.Context) (now stock, err error) {
	err = s.pool.QueryRow(ctx, schema.Qualify(stockSQL, s.name)).Scan(&now.delayed, &now.stored, &now.suspected, &now.undecided)
	if err != nil {
		return now, fmt.Errorf("count what is under way in schema %q: %w", s.name, err)
	}
	return now, nil
}

// mendLate has all messages that wait for a later attempt handled at once, with
// success.
func (s store) mendLate(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, schema.Qualify(mendLateSQL, s.name)); err != nil {
		return fmt.Errorf("make the crowd of schema %q due: %w", s.name, err)
	}
	return nil
}
