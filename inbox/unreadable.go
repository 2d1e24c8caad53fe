package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
)

// unreadableDelay is how long a row is left alone that cannot be read.
const unreadableDelay = 10 * time.Minute

// errUnreadable is what a row of the inbox is left with that cannot be handled
// as it stands.
var errUnreadable = errors.New("the message cannot be read")

// read returns the message of a row, and the dead letter that holds it. Nil: the
// row does.
func (in *Inbox) read(ctx context.Context, s *stored) (*handler.Message, *dlq.Letter, error) {
	if s.letterID == 0 {
		msg, err := in.decoded(ctx, s)
		return msg, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	letter, err := in.load(ctx, s.letterID)
	switch {
	case errors.As(err, new(pgx.ScanArgError)): // that row's alone
		return nil, nil, fmt.Errorf("%w: %w", errUnreadable, err)
	case err != nil:
		return nil, nil, err
	case !letter.RedactedAt.IsZero():
		return nil, nil, fmt.Errorf("%w: the payload of dead letter %d was deleted", errUnreadable, s.letterID)
	case letter.ConsumerID != in.consumerID:
		return nil, nil, fmt.Errorf("%w: dead letter %d is another consumer's", errUnreadable, s.letterID)
	}
	return letter.Message, letter, nil
}

// leaveAlone puts a row off that cannot be read, and says so in it. An outage
// is over at the next look.
func (in *Inbox) leaveAlone(ctx context.Context, s *stored, cause error) {
	delay := time.Second
	if errors.Is(cause, errUnreadable) || errors.Is(cause, dlq.ErrNotFound) || errors.Is(cause, handler.ErrCodec) && !msgrow.IsAway(cause) {
		delay = unreadableDelay
		in.cfg.Logger.ErrorContext(ctx, "a message of the inbox cannot be read and is left alone: a person must decide",
			slog.String("consumer", in.consumer), slog.Int64("seq", s.seq), slog.Any("error", cause))
	}
	t := &task{stored: s, attempts: s.attempts, later: &postponement{delay: delay, errors: dlq.Chain(cause)}}
	t.failures.first = time.Now().Add(-s.failing)
	in.putOff(ctx, t)
}
