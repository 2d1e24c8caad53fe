package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
	"github.com/semel-go/semel/internal/purging"
	"github.com/semel-go/semel/schema"
)

// Relay publishes the events of an outbox. Any number of them, in any number
// of processes, share the work: each owns some of the shards for a while, and
// the events of one aggregate are all in one shard. Make one with [NewRelay].
type Relay struct {
	pool      *pgxpool.Pool
	publisher handler.Publisher
	ordered   bool
	atOnce    int // how many events the publisher sends at once
	cfg       RelayConfig
	q         *relayQueries
	counters  counters
	woken     chan struct{} // one place: somebody has written
	purges    purging.Rhythm
}

// NewRelay returns a relay of the outbox to publisher. It validates and does no
// I/O; bad values are reported all at once. Pool and publisher stay the
// caller's. The relay uses four connections of the pool.
func NewRelay(pool *pgxpool.Pool, publisher handler.Publisher, cfg RelayConfig) (*Relay, error) {
	switch {
	case pool == nil:
		return nil, errors.New("make relay: pool is nil")
	case publisher == nil:
		return nil, errors.New("make relay: publisher is nil")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(pool.Config().MaxConns); err != nil {
		return nil, fmt.Errorf("make relay: %w", err)
	}
	ordered, _ := publisher.(handler.OrderedPublisher)
	atOnce := math.MaxInt
	if limited, ok := publisher.(handler.LimitedPublisher); ok {
		atOnce = max(1, limited.AtOnce())
	}
	return &Relay{
		pool:      pool,
		publisher: publisher,
		ordered:   ordered != nil && ordered.KeepsOrder(),
		atOnce:    atOnce,
		cfg:       cfg,
		q:         newRelayQueries(cfg.Schema),
		woken:     make(chan struct{}, 1),
		purges:    purging.Usual(),
	}, nil
}

// Wake makes a relay at rest look for events at once. Call it after a commit
// in the same process. It never blocks and is safe for concurrent use.
func (r *Relay) Wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// Run publishes events until ctx ends. It blocks. Then it publishes no more,
// notes what was confirmed, gives its shards back, and returns nil.
//
// While the database or the broker is away it waits, and says so in the log;
// no attempt is spent. Run returns an error when it cannot start: the tables
// are missing, are of another version, or may not be used, or the database was
// restored without its sequences.
func (r *Relay) Run(ctx context.Context) error {
	if err := r.check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("start relay: %w", err)
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx)) // what drains outlives ctx
	defer stop()
	run := r.newRun(work)
	var keeper, noter, purger sync.WaitGroup
	keeper.Go(func() { run.keepLeases(ctx) })
	keeper.Go(func() { run.listen(ctx) })
	purger.Go(func() { run.purge(ctx) })
	noter.Go(run.note)
	run.read(ctx)
	run.drain()
	keeper.Wait() // it takes no more
	run.leave()
	stop()
	noter.Wait()
	purger.Wait() // a slow archive keeps nobody else from our shards
	return nil
}

func (r *Relay) newRun(work context.Context) *relayRun {
	return &relayRun{
		Relay:   r,
		id:      uuid.Must(uuid.NewV7()),
		work:    work,
		blocked: make(map[aggregate]*block),
		inMind:  make(map[int64]*event),
		lanes:   make(map[string]*lane),
		poke:    make(chan struct{}, 1),
		toNote:  make(chan struct{}, 1),
		tick:    make(chan struct{}, 1),
		noted:   make(chan struct{}),
	}
}

func (r *Relay) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*r.cfg.StatementTimeout)
	defer cancel()
	if err := schema.Check(ctx, r.pool, r.cfg.Schema); err != nil {
		return err
	}
	if err := schema.CheckAccess(ctx, r.pool, r.cfg.Schema, schema.Relay); err != nil {
		return err
	}
	return r.checkSequence(ctx)
}

// checkSequence finds a database that was restored, or replicated, without its
// sequences: events beyond them would not be seen, and new ones of their aggregates
// would go first.
func (r *Relay) checkSequence(ctx context.Context) error {
	looking, cancel := context.WithTimeout(ctx, r.cfg.StatementTimeout)
	defer cancel()
	var drawn, highest int64
	err := r.pool.QueryRow(looking, r.q.sequence).Scan(&drawn, &highest)
	switch {
	case err != nil && looking.Err() != nil && ctx.Err() == nil: // much that is published and not vacuumed yet
		r.cfg.Logger.WarnContext(ctx, "relay could not see in time where the sequence of the outbox stands, and goes on", slog.String("relay", r.cfg.Name))
		return nil
	case err != nil:
		return fmt.Errorf("look at the sequence of the outbox: %w", err)
	case highest <= drawn:
		return nil
	}
	in := cmp.Or(r.cfg.Schema, schema.Default)
	return fmt.Errorf("the sequence of the outbox stands at %d, and an event with seq %d waits: stop who writes events, and run SELECT setval('%s', (SELECT max(seq) FROM %s))",
		drawn, highest, pgx.Identifier{in, "outbox_seq_seq"}.Sanitize(), pgx.Identifier{in, "outbox"}.Sanitize())
}

// relayRun is one Run of a relay.
type relayRun struct {
	*Relay
	id   uuid.UUID       // of this run; the owner of its leases
	work context.Context //nolint:containedctx // what publishing and noting live in: it ends when the drain is over

	poke   chan struct{} // one place: the reader should look again
	toNote chan struct{} // one place: there is something to note
	tick   chan struct{} // one place: the leases should be looked at

	publishing sync.WaitGroup // goroutines of lanes

	mu      sync.Mutex // guards all below, and what events, lanes, leases and blocks point to
	held    byLease[*lease]
	blocked map[aggregate]*block
	inMind  map[int64]*event // by seq: read, and not done with
	top     int64            // the highest seq that ever was in mind: most that is read is behind it
	lanes   map[string]*lane
	results []result      // to be noted
	noting  int           // results that are being noted
	noted   chan struct{} // closed, and made anew, when some were
	forget  []*event      // done with; the reader forgets them before its next read
	unblock []aggregate
	stopped bool  // publish no more
	restart bool  // the reader must begin at seq 0
	holding bool  // the reader reads nothing new until something is done with
	floor   int64 // everything up to here was read; a hint
	bytes   int   // of the payloads in mind

	// failing is held while failed attempts are noted, and while the reader reads
	// them. It is taken before mu.
	failing sync.Mutex
}

// aggregate is the thing whose events keep their order.
type aggregate struct{ kind, id string }

// event is a row on its way through a relay.
type event struct {
	seq       int64
	id        pgtype.UUID
	lo        int16 // its lease
	epoch     int64 // the lease's, when it was read
	aggregate aggregate
	attempts  int
	retry     bool           // it is the head of a blocked aggregate, and due
	cut       bool           // the read ended here: it had enough bytes
	noted     bool           // its result is in the database, guarded by mu
	locked    bool           // somebody has locked its row: only who notes results looks at it
	size      int            // of its payload and headers as they are stored
	stored    msgrow.Payload // how it is encoded; zero once msg has it decoded
	msg       *handler.Message
	own       handler.Message // what msg points to, unless it was decoded
}

// poked wakes whoever waits on a channel of one place.
func poked(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drain waits until what is being published has its answer and is noted.
func (r *relayRun) drain() {
	r.mu.Lock()
	r.stopped = true
	for _, l := range r.lanes {
		r.dropQueue(l)
	}
	r.mu.Unlock()
	r.publishing.Wait() // bounded by the attempt timeout

	patience := time.NewTimer(2 * r.cfg.StatementTimeout)
	defer patience.Stop()
	for {
		r.mu.Lock()
		left, noted := len(r.results)+r.noting, r.noted
		r.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-noted:
		case <-patience.C:
			r.cfg.Logger.Warn("relay ends before it could note what was published: it is published again, under the same ids",
				slog.String("relay", r.cfg.Name), slog.Int("events", left))
			return
		}
	}
}
