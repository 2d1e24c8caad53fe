package calls

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/msgrow"
)

// Decision is what a person found out of a call.
type Decision string

// The decisions.
const (
	// WasDone: the provider has done it. The message goes on with the result that the
	// person gives, or with none.
	WasDone Decision = "done"
	// NotDone: the provider has not done it and will not: it is made under a new key.
	NotDone Decision = "not-done"
	// Retry: the provider recognises the key, or it does not matter: it is made again
	// under the same one.
	Retry Decision = "retry"
)

// state is how the call stands then; 0: there is no such decision.
func (d Decision) state() State {
	switch d {
	case WasDone:
		return Done
	case NotDone:
		return Failed
	case Retry:
		return Ready
	}
	return 0
}

// maxBy bounds the name of who decides, in bytes.
const maxBy = 255

// Resolution is a decision and who made it.
type Resolution struct {
	Decision Decision

	// Result is for [WasDone]: what the handler gets. Nil: nothing.
	Result []byte

	// By is who decided, to be noted. Empty: nobody knows.
	By string
}

func (r Resolution) check() error {
	switch {
	case r.Decision.state() == 0:
		return fmt.Errorf("there is no decision %q, but: %s, %s, %s", r.Decision, WasDone, NotDone, Retry)
	case r.Result != nil && r.Decision != WasDone:
		return fmt.Errorf("a result is only for a call that was done, not for %q", r.Decision)
	case len(r.Result) > defaultMaxResult:
		return fmt.Errorf("the result has %d bytes, at most %d are allowed", len(r.Result), defaultMaxResult)
	case len(r.By) > maxBy || !utf8.ValidString(r.By) || strings.ContainsFunc(r.By, unicode.IsControl):
		return fmt.Errorf("the name of who decides is text without control characters, of at most %d bytes", maxBy)
	}
	return nil
}

// Resolve decides on calls of which nobody knows the end: [Unknown], or [Started] by
// somebody who is gone. It returns those that it changed: not those that are or may be
// under way, unless somebody has parked them by hand for ever, and not those that another
// person decided on first. The result of a call that is done can be given later, where it
// was not kept.
//
// The message does not go on by that: its dead letter is to be replayed. With an error,
// what was changed before stays so. q is a pool, a connection or a transaction.
func (s Store) Resolve(ctx context.Context, q querier, r Resolution, refs ...Ref) (changed []Ref, err error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("resolve calls: %w", err)
	}
	p, err := msgrow.Encode(ctx, s.codec, r.Result)
	if err != nil {
		return nil, fmt.Errorf("resolve calls: %w", err)
	}
	for _, ref := range refs { // one at a time: nobody waits for two of its rows
		tag, err := q.Exec(ctx, s.queries().resolve, ref.ConsumerID, ref.MessageID, ref.Step, int16(r.Decision.state()),
			p.Bytes, pgtype.Text{String: p.KeyID, Valid: p.Encoded}, r.By)
		if err != nil {
			return changed, fmt.Errorf("resolve call %.64q of message %s: %w", ref.Step, ref.MessageID, err)
		}
		if tag.RowsAffected() == 1 {
			changed = append(changed, ref)
		}
	}
	return changed, nil
}
