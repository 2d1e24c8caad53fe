package calls

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/handler"
)

// ask asks the provider whether the call was done, and reports whether it is to be
// made now.
func (l *Ledger) ask(ctx context.Context, t *try) (make bool) {
	l.trace(ctx, BeforeAsk, t.call)
	askCtx, cancel := context.WithDeadlineCause(ctx, t.began.Add(t.opts.Timeout), ErrTimeout)
	defer cancel()
	result, answer, err := t.opts.WasItDone(askCtx, t.call)
	switch {
	case err != nil:
		t.ended = ended{state: t.before.state, err: fmt.Errorf("ask whether %s was done: %w", t.call.name(), err)}
	case answer == Yes:
		t.ended = ended{state: Done, result: result}
	case answer == No:
		return true
	case t.unsent():
		t.ended = ended{state: t.before.state, err: handler.Unavailable(fmt.Errorf("ask whether %s was done before anything is sent: the provider cannot tell", t.call.name()))}
	default:
		t.ended = t.unknown(errors.New("the provider was asked, and cannot tell"))
	}
	return false
}
