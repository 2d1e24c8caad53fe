package inbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/purging"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// Inbox handles the messages of one consumer. It is safe for concurrent use.
type Inbox struct {
	pool       *pgxpool.Pool
	consumer   string
	consumerID int32
	handle     handler.Func
	cfg        Config

	store   dedup.Store
	letters dlq.Store
	tables  *tables
	rows    *queries // of the tables
	events  outbox.Writer
	limits  dedup.Limits

	// storeLimits bound the wait of what is only stored: a copy in a worker's hands is
	// looked at instead, and the connection is for others.
	storeLimits dedup.Limits

	lanes    *lanes
	keeper   *keeper
	flights  flights
	counters counters

	failedBefore failedBefore
	dones        sync.Pool // of chan struct{}, for guarded
	tooOld       streak    // of messages that are no delivery of a run
	purges       purging.Rhythm
	room         room
	working      chan struct{} // one place: held by who works the inbox in this process
	wake         chan struct{} // one place: something is ready in it
	suspects     chan struct{} // one place: empty while a suspect runs

	started  atomic.Bool   // the start checks passed
	starting chan struct{} // one place: held while they run
	pooled   atomic.Bool   // they found a pooler before the database, and prepared statements in use
}

// New returns the inbox of a consumer: the stable name of one logical
// subscriber, part of the identity of every message it handled. Renaming a
// consumer makes it handle everything again. h is called for each message.
//
// New validates and does no I/O; bad values are reported all at once. The pool
// stays the caller's.
func New(pool *pgxpool.Pool, consumer string, h handler.Func, cfg Config) (*Inbox, error) {
	var errs []error
	if pool == nil {
		return nil, fmt.Errorf("make inbox of consumer %.64q: pool is nil", consumer)
	}
	if h == nil {
		errs = append(errs, errors.New("handler is nil"))
	}
	maxConns := pool.Config().MaxConns
	cfg = cfg.withDefaults(maxConns)
	errs = append(errs, dedup.CheckConsumer(consumer), schema.CheckName(cfg.Schema), cfg.validate(maxConns))
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make inbox of consumer %.64q: %w", consumer, err)
	}

	in := &Inbox{
		pool:       pool,
		consumer:   consumer,
		consumerID: dedup.ConsumerID(consumer),
		handle:     h,
		cfg:        cfg,
		store:      dedup.NewStore(cfg.Schema),
		letters:    dlq.NewStore(cfg.Schema).WithCodec(cfg.Codec),
		tables:     newTables(cfg.Schema),
		events:     outbox.NewWriter(cfg.Schema).WithCodec(cfg.Codec),
		limits:     dedup.NewLimits(cfg.LockTimeout, cfg.HandlerTimeout+cfg.WatchdogGrace),
		flights:    flights{byID: make(map[dedup.ID]*task)},

		storeLimits:  dedup.NewLimits(min(cfg.LockTimeout, 100*time.Millisecond), cfg.HandlerTimeout+cfg.WatchdogGrace),
		failedBefore: failedBefore{byID: make(map[dedup.ID]putOff)},

		starting: make(chan struct{}, 1),
		purges:   purging.Usual(),
		working:  make(chan struct{}, 1),
		wake:     make(chan struct{}, 1),
		suspects: make(chan struct{}, 1),
	}
	in.rows = &in.tables.rows
	in.suspects <- struct{}{} // free
	in.lanes = newLanes(cfg.Workers, func(t *task) { t.run.work(t) })
	in.keeper = newKeeper(in, cfg.Gates)
	return in, nil
}

// Process handles one message and returns when that is done. It blocks through
// the message's lane, a worker slot and its quick attempts.
//
// A nil error means that the message is settled and may be acknowledged; the
// outcome says how: Processed, Duplicate, Mismatch, Dead, or Stored: the quick
// attempts are spent, or it waits behind its key, and [Inbox.Work] or
// [Inbox.Run] handles it, here or in another process. An error means that it is
// not settled and must come again: ctx ended, or the database or a dependency is
// away ([ErrOutage], [DependencyError]), or a start check failed, or many in a row
// are too old ([ErrTooOld]).
func (in *Inbox) Process(ctx context.Context, msg *handler.Message) (handler.Outcome, error) {
	if msg == nil {
		return 0, fmt.Errorf("handle message for consumer %q: %w", in.consumer, errBadMessage)
	}
	return in.direct(ctx, &task{msg: msg})
}

// direct takes a task that is no delivery through the engine on the caller's
// goroutine.
func (in *Inbox) direct(ctx context.Context, t *task) (handler.Outcome, error) {
	if err := in.start(ctx); err != nil {
		return 0, err
	}
	err := in.refused()
	if err != nil {
		return 0, fmt.Errorf("handle message %.255q for consumer %q: %w", t.msg.ID, in.consumer, err)
	}
	t.key = laneKey(t.msg)
	if !in.lanes.enterAtOnce(t) {
		t.granted = make(chan struct{}, 1)
		in.lanes.enter(t)
		err = in.await(ctx, t)
	}
	defer in.lanes.leave(t)

	var outcome handler.Outcome
	if err == nil {
		outcome, err = in.settle(ctx, t)
	}
	if err != nil {
		return 0, fmt.Errorf("handle message %.255q for consumer %q: %w", t.msg.ID, in.consumer, err)
	}
	return outcome, nil
}

// await waits until the task has a slot.
func (in *Inbox) await(ctx context.Context, t *task) error {
	return in.awaitUntil(ctx, t, t.hopeless())
}

// awaitUntil waits until the task has a slot, or there is no use in waiting.
func (in *Inbox) awaitUntil(ctx context.Context, t *task, useless <-chan struct{}) error {
	for revoked := t.revoked(); ; {
		select {
		case <-t.granted:
			return nil
		case <-revoked:
			if t.keeps() {
				revoked = nil
				continue
			}
		case <-ctx.Done():
		case <-useless:
		}
		if !in.lanes.withdraw(t) {
			<-t.granted // it came at the same moment: take it, leave gives it back
		}
		return t.stopCause(ctx)
	}
}

// pause gives the task's slot back until d has passed and wake (nil: none) is
// closed, then waits for a slot again. The lane stays the task's.
func (in *Inbox) pause(ctx context.Context, t *task, d time.Duration, wake <-chan struct{}) error {
	in.rest(t)
	return in.resume(ctx, t, d, wake)
}

// resume waits for a slot again, once d has passed and wake is closed.
func (in *Inbox) resume(ctx context.Context, t *task, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	revoked := t.revoked()
	for passed := timer.C; passed != nil || wake != nil; {
		select {
		case <-passed:
			passed = nil
		case <-wake:
			wake = nil
		case <-t.granted: // one that yielded has its turn
			return nil
		case <-ctx.Done():
			return t.stopCause(ctx)
		case <-t.hopeless():
			return t.stopCause(ctx)
		case <-revoked:
			if !t.keeps() {
				return t.stopCause(ctx)
			}
			revoked = nil
		}
	}
	in.lanes.rejoin(t)
	return in.await(ctx, t)
}

// rest gives the task's slot back. The lane stays the task's.
func (in *Inbox) rest(t *task) {
	t.listen()
	in.lanes.rest(t)
}

// listen makes ready to be granted a slot.
func (t *task) listen() {
	if t.granted == nil {
		t.granted = make(chan struct{}, 1)
	}
}

// hopeless is closed when waiting leads nowhere any more. Nil for Process.
func (t *task) hopeless() <-chan struct{} {
	if t.run == nil {
		return nil
	}
	return t.run.hopeless
}

// revoked is closed when the source took the delivery back. Nil: never.
func (t *task) revoked() <-chan struct{} {
	if t.delivery == nil {
		return nil
	}
	return t.delivery.Revoked
}

// keeps reports whether the task stays though its delivery was revoked, see
// [pausing.keeps].
func (t *task) keeps() bool { return t.run != nil && t.run.pausing.keeps() }

// stopCause says why a task goes no further.
func (t *task) stopCause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	select {
	case <-t.revoked():
		return ErrRevoked
	default:
		return ErrDraining
	}
}
