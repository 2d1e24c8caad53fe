package campaign

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/schema"
)

//go:embed queries/open_letters.sql
var openLettersSQL string

//go:embed queries/mend.sql
var mendSQL string

// decideEvery is how often a person looks: seldom enough that something has
// gathered behind what is dead.
const decideEvery = 50 * time.Millisecond

// openLetter is a dead letter that nobody has decided about since it died last.
type openLetter struct {
	ID                       int64
	Message, Type, DecidedBy string
}

// person decides about dead letters until ctx ends, while consumers are killed:
// what can be mended is mended and replayed, other poison is replayed once, in
// vain, and then discarded.
func (s store) person(ctx context.Context) error {
	look := time.NewTicker(decideEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
		var letters []openLetter
		err := collect(ctx, s.pool, schema.Qualify(openLettersSQL, s.name), &letters)
		for i := 0; i < len(letters) && err == nil; i++ {
			err = s.decide(ctx, letters[i])
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("decide about the dead letters of schema %q: %w", s.name, err)
		}
	}
}

func (s store) decide(ctx context.Context, letter openLetter) error {
	decisions, do := inbox.NewStore(s.name), inbox.Store.Replay
	switch {
	case letter.Type == wire.Broken:
		if _, err := s.pool.Exec(ctx, schema.Qualify(mendSQL, s.name), letter.Message); err != nil {
			return err
		}
	case letter.DecidedBy != "":
		do = inbox.Store.Discard
	}
	for range 1 + rand.IntN(2) { // some press twice
		if err := do(decisions, ctx, s.pool, letter.ID, "ann"); err != nil {
			return tolerate(err)
		}
	}
	return nil
}

// tolerate passes over what keeps a decision from being made that is no mistake:
// another one was faster, or the message is being handled at this moment.
func tolerate(err error) error {
	var refused *pgconn.PgError
	if errors.Is(err, inbox.ErrNoDeadLetter) || errors.As(err, &refused) && refused.Code == "55P03" {
		return nil
	}
	return err
}
