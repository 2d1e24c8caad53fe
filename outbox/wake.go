package outbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/internal/jitter"
	"github.com/semel-go/semel/schema"
)

const (
	// notifyEvery is how often a notifier tells the database at most.
	notifyEvery = 10 * time.Millisecond

	// probeTimeout is how long a relay waits for a notification of its own before
	// it takes it that none comes through.
	probeTimeout = 2 * time.Second
)

// Notifier wakes relays in other processes, so that they need not wait for
// their next look. Make one with [NewNotifier], let it run, and call Wake after
// each commit, or let a [Writer] do so, see [Writer.AfterCommit].
//
// It notifies from a connection of its own and at most every 10 ms. NOTIFY
// inside the transactions themselves would make their commits wait for each
// other. A lost notification costs a poll's wait and nothing else.
type Notifier struct {
	pool    *pgxpool.Pool
	channel string
	wake    chan struct{}
}

// NewNotifier returns a notifier for the outbox of a schema (empty: the default
// one).
func NewNotifier(pool *pgxpool.Pool, schemaName string) *Notifier {
	return &Notifier{pool: pool, channel: channelOf(schemaName), wake: make(chan struct{}, 1)}
}

// Wake asks for a notification. It never blocks and is safe for concurrent use.
func (n *Notifier) Wake() { poked(n.wake) }

// Run notifies until ctx ends. It blocks, and returns nil. What cannot be sent
// is dropped: relays look by themselves.
func (n *Notifier) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		}
		_ = notify(ctx, n.pool, n.channel, "")
		pause := time.NewTimer(notifyEvery)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

func notify(ctx context.Context, pool *pgxpool.Pool, channel, payload string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := pool.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, payload)
	return err
}

// channelOf is the channel of a schema's outbox. A channel's name is as short
// as any other, so it holds a hash.
func channelOf(schemaName string) string {
	if schemaName == "" {
		schemaName = schema.Default
	}
	sum := sha256.Sum256([]byte(schemaName))
	return "semel_outbox_" + hex.EncodeToString(sum[:8])
}

// errDeaf is why a relay does not listen.
var errDeaf = errors.New("no notification comes through: behind a pooler in transaction mode there is none")

// listen wakes the reader when somebody notifies, until ctx ends. Without it
// the reader looks by itself.
func (r *relayRun) listen(ctx context.Context) {
	backoff := jitter.New(100*time.Millisecond, 30*time.Second)
	told := false
	for ctx.Err() == nil {
		err := r.listenOnce(ctx, backoff.Reset)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errDeaf):
			r.cfg.Logger.InfoContext(ctx, "relay polls", slog.String("relay", r.cfg.Name), slog.Duration("at_rest_every", r.cfg.Poll), slog.Any("because", err))
			return
		case !told:
			told = true
			r.cfg.Logger.InfoContext(ctx, "relay lost the connection on which it listens: it polls meanwhile", slog.String("relay", r.cfg.Name), slog.Any("error", err))
		}
		timer := time.NewTimer(backoff.NextBackOff())
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (r *relayRun) listenOnce(ctx context.Context, heard func()) error {
	pooled, err := r.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("listen for new events: %w", err)
	}
	conn := pooled.Hijack() // it listens for as long as it lives: nobody else may get it
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	channel := channelOf(r.cfg.Schema)
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return fmt.Errorf("listen for new events: %w", err)
	}
	if err := r.probe(ctx, conn, channel); err != nil {
		return err
	}
	heard()
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("listen for new events: %w", err)
		}
		r.Wake()
	}
}

// probe finds out whether notifications come through.
func (r *relayRun) probe(ctx context.Context, conn *pgx.Conn, channel string) error {
	word := rand.Text()
	if err := notify(ctx, r.pool, channel, word); err != nil {
		return fmt.Errorf("try whether notifications come through: %w", err)
	}
	waiting, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for {
		got, err := conn.WaitForNotification(waiting)
		switch {
		case err == nil && got.Payload == word:
			return nil
		case err == nil:
			r.Wake()
		case ctx.Err() == nil && waiting.Err() != nil:
			return errDeaf
		default:
			return fmt.Errorf("try whether notifications come through: %w", err)
		}
	}
}
