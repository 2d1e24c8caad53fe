package inbox_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
)

// cutBundle is an inbox whose connections go through a proxy that can cut them
// at any message of the protocol. It does one thing at a time, so that what it
// sends can be numbered.
type cutBundle struct {
	*testBundle
	proxy    *faultproxy.Proxy
	app      string // what its sessions are called
	conns    int32  // of its pool
	pool     *pgxpool.Pool
	in       *inbox.Inbox
	handling atomic.Bool // user code runs: what is sent now is its own

	mu     sync.Mutex      // guards failed
	failed map[string]bool // messages that were handled to the end once
}

func setupCuts(t *testing.T) *cutBundle {
	t.Helper()
	b := &cutBundle{testBundle: setup(t), conns: 3, failed: map[string]bool{}}
	to := b.Pool.Config().ConnConfig
	b.proxy = faultproxy.NewFramed(t, net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))), faultproxy.Postgres())
	b.app = b.Schema + "_cut"
	return b
}

// open gives the bundle a pool and an inbox that have done nothing yet.
func (b *cutBundle) open(t *testing.T, consumer string, cfg inbox.Config) {
	t.Helper()
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(b.proxy.Addr())
	require.NoError(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	to := config.ConnConfig
	to.Host, to.Port, to.Fallbacks = host, uint16(number), nil
	to.RuntimeParams["application_name"] = b.app
	config.MaxConns = b.conns
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // one on a slow machine would be a message more
	b.pool, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(b.pool.Close)
	b.in = b.inboxOn(t, b.pool, consumer, b.handle, cfg)
}

// What becomes of a message is its type. All of them leave an effect first.
const (
	succeeds    = "succeeds"
	failsOnce   = "fails-once"
	failsAlways = "fails-always"
	isHopeless  = "is-hopeless"
	untilMended = "is-hopeless-until-mended" // fails once, for good
)

func (b *cutBundle) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	b.handling.Store(true)
	defer b.handling.Store(false)
	if err := effect(ctx, tx, msg); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.failed[msg.ID]
	b.failed[msg.ID] = true
	switch {
	case msg.Type == failsAlways, msg.Type == failsOnce && !before:
		return errors.New("no")
	case msg.Type == isHopeless, msg.Type == untilMended && !before:
		return handler.Permanent(errors.New("never"))
	default:
		return nil
	}
}

// recording is the messages of the protocol that an ambush saw.
type recording struct {
	*faultproxy.Ambush
	kinds    string // a letter each; the first one of a session has none and is ^
	handling []bool // whether user code was running
}

// lie lies in wait for a message, and records all.
func (b *cutBundle) lie(p cutPoint) *recording {
	r := &recording{}
	r.Ambush = b.proxy.Ambush(p.side, p.at, p.moment, func(frame []byte) bool {
		kind := frame[0]
		switch {
		case kind == 0 && slices.Equal(frame[4:8], cancelRequest):
			return false // the driver's, after a cut and at a time of its own
		case kind == 'X' && p.side == faultproxy.FromClient:
			return false // so is its goodbye, when the pool closes
		case kind == 0:
			kind = '^'
		}
		r.kinds += string(kind)
		r.handling = append(r.handling, b.handling.Load())
		return true
	})
	return r
}

// cancelRequest is the code that stands where others have the version.
var cancelRequest = []byte{0x04, 0xd2, 0x16, 0x2e}

// left is what the database holds of a message.
type left struct{ effects, letters, copies, attempts, events int }

func (b *cutBundle) left(t *testing.T, id string) left {
	t.Helper()
	var l left
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM effects WHERE message_id = $1), (SELECT count(*) FROM outbox WHERE correlation_id = $1),
			count(*), coalesce(sum(count), 0), coalesce(sum(attempts), 0)
		FROM dead_letters WHERE message_text = $1 AND state = 'open'`, id).Scan(&l.effects, &l.events, &l.letters, &l.copies, &l.attempts))
	return l
}

// whyDead is what the dead letters of a message say.
func (b *cutBundle) whyDead(t *testing.T, id string) (why string) {
	t.Helper()
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
		SELECT coalesce(string_agg(reason || ' after ' || attempts || ' attempts: ' || array_to_string(errors, ': '), '; '), 'it is not')
		FROM dead_letters WHERE message_text = $1`, id).Scan(&why))
	return why
}

// requireNothingLeaked waits until the pool has all its connections back and
// the server has no session but theirs, none with a transaction open.
func (b *cutBundle) requireNothingLeaked(t *testing.T, when string) {
	t.Helper()
	var acquired, total, sessions, open int32
	require.Eventually(t, func() bool {
		stat := b.pool.Stat()
		acquired, total = stat.AcquiredConns(), stat.TotalConns()
		err := b.Pool.QueryRow(t.Context(), `
			SELECT count(*), count(*) FILTER (WHERE state <> 'idle')
			FROM pg_stat_activity WHERE application_name = $1`, b.app).Scan(&sessions, &open)
		return err == nil && acquired == 0 && open == 0 && sessions == total
	}, time.Minute, tick, "%s: connections leaked", when)
}

// told is how often a person was told that the message is dead.
func (b *cutBundle) told(id string) int {
	n := 0
	for _, e := range b.events.kinds(inbox.DeadLettered) {
		if e.Message.ID == id {
			n++
		}
	}
	return n
}
