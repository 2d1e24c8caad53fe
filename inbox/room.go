package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/jitter"
)

// lookForRoomEvery is how old the answer may be whether the inbox is full.
const lookForRoomEvery = 5 * time.Second

// room remembers whether the inbox was full at the last look.
type room struct {
	lookedAt atomic.Int64 // Unix time in nanoseconds
	full     atomic.Bool
}

// checkRoom returns [ErrFull] if the inbox holds all that it may.
func (in *Inbox) checkRoom(ctx context.Context) error {
	if in.cfg.MaxStored < 0 {
		return nil
	}
	r := &in.room
	looked := r.lookedAt.Load()
	if now := time.Now().UnixNano(); now-looked > int64(lookForRoomEvery) && r.lookedAt.CompareAndSwap(looked, now) {
		ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
		defer cancel()
		var full bool
		if err := in.pool.QueryRow(ctx, in.rows.isFull, in.consumerID, int64(in.cfg.MaxStored), in.cfg.Schema).Scan(&full); err != nil {
			r.lookedAt.Store(looked)
			return fmt.Errorf("look whether the inbox is full: %w", err)
		}
		r.full.Store(full)
	}
	if r.full.Load() {
		return fmt.Errorf("%w: it holds %d messages (MaxStored)", ErrFull, in.cfg.MaxStored)
	}
	return nil
}

// waitForRoom holds a message back that the inbox has no room for. It keeps its
// lane and its place in what this process may hold, so its source is held up; only
// messages of the inbox pass it, for they make room.
func (in *Inbox) waitForRoom(ctx context.Context, t *task, cause error) error {
	if t.patience == nil {
		t.patience = jitter.New(in.cfg.QuickDelay, lookForRoomEvery)
	}
	if !t.toldFull {
		t.toldFull = true
		in.cfg.Logger.ErrorContext(ctx, "inbox is full: the message waits, and its source with it", in.attrs(t, slog.Any("error", cause))...)
	}
	if t.run == nil {
		return cause // only the caller knows what its source should do meanwhile
	}
	if t.run.isDraining() { // nobody makes room any more
		return ErrDraining
	}
	if t.letOthers != nil { // none of the user's code runs for it any more, and who makes room may have to run alone
		t.letOthers()
	}
	t.listen()
	in.lanes.yield(t)
	return in.resume(ctx, t, t.patience.NextBackOff(), nil)
}
