package campaign

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/provider"
	"github.com/semel-go/semel/schema"
)

//go:embed queries/receipts_table.sql
var receiptsTableSQL string

const (
	clientCount = 2
	callWave    = 12 // messages of a wave
	callers     = 6  // calls that a client makes at once, and messages that it takes from the inbox
)

// mishaps is what goes wrong at the provider: each once, then by chance.
func mishaps(seed uint64) []string {
	var script []string
	for _, fault := range provider.AllFaults() {
		script = append(script, string(fault))
	}
	return []string{
		"-script", strings.Join(script, ","),
		"-chance", "reset-before=0.05,unavailable=0.04,reset-after=0.05,silent=0.06,late=0.12,error-after=0.04,answer-twice=0.04,garbage-after=0.03,die=0.015",
		"-late-by", wire.CallLate.String(),
		"-patience", wire.CallPatience.String(),
		"-seed", fmt.Sprint(seed),
	}
}

// clients is the processes of one point that call a provider, which is a process
// too. All of it but the sending end of events belongs to the goroutine that runs it.
type clients struct {
	spec
	config   Config
	name     string // of the schema and the consumer
	binary   string
	provider *provider.Keeper
	ledger   string // of the provider
	store    store
	inbox    *inbox.Inbox // to store messages with
	log      func(format string, args ...any)

	sent        []*handler.Message
	crew        []*client // that live
	events      chan event
	asleep      *client      // stopped, until it is woken
	wakeAt      time.Time    // zero: when all others are through
	again       map[int]bool // were in hand of one that was killed
	killed      int          // that count, stopped ones too
	redelivered int
	stock       stock     // at the last look
	moved       time.Time // when something happened last
}

// client is one process.
type client struct {
	*process
	hand map[int]bool // messages that it has in hand
}

// clients runs the group of one point of a call from its empty schema to the count.
func (c *campaign) clients(ctx context.Context, s spec) (result Result) {
	result.spec = s
	name := fmt.Sprintf("chaos_%s_%s_%s", c.id, s.broker, strings.ReplaceAll(string(s.point), "-", "_"))
	fail := func(err error) { result.Err = errors.Join(result.Err, err) }
	cleanup := func(do func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		fail(do(ctx))
	}

	defer cleanup(func(ctx context.Context) error { return dropStore(ctx, c.pool, name) })
	err := createStore(ctx, c.pool, name)
	if err == nil {
		_, err = c.pool.Exec(ctx, schema.Qualify(receiptsTableSQL, name))
	}
	if err != nil {
		fail(err)
		return result
	}
	nobody := func(context.Context, pgx.Tx, *handler.Message) error { return nil }
	in, err := inbox.New(c.pool, name, nobody, inbox.Config{Schema: name})
	if err != nil {
		fail(err)
		return result
	}
	g := &clients{
		spec: s, config: c.config, name: name, binary: c.binaries[callerProgram],
		ledger: filepath.Join(c.dir, name+".jsonl"), store: store{c.pool, name}, inbox: in,
		log:    func(format string, args ...any) { c.log(s, format, args...) },
		events: make(chan event, 1024), again: map[int]bool{},
	}
	seed := rand.Uint64()
	g.provider, err = provider.Keep(func(addr string) *exec.Cmd {
		args := append([]string{"-addr", addr, "-ledger", g.ledger, "-attended"}, mishaps(seed)...)
		return exec.Command(c.binaries[providerProgram], args...) //nolint:gosec // we have built it
	})
	if err != nil {
		fail(err)
		return result
	}
	fail(g.run(ctx))
	g.provider.Close() // what is late is done now
	cleanup(func(ctx context.Context) error {
		var err error
		result.Tally, result.Calls, result.Effects, err = g.count(ctx)
		return err
	})
	result.Kills, result.Redelivered = g.killed, g.redelivered
	for _, note := range result.Notes {
		c.log(s, "%s", note)
	}
	if result.Err != nil {
		c.log(s, "%v", result.Err)
	}
	return result
}

// run goes through all rounds and lets the last clients end as they should.
func (g *clients) run(ctx context.Context) error {
	defer g.abandon()
	for range clientCount {
		if err := g.recruit(); err != nil {
			return err
		}
	}
	for g.killed < g.kills {
		if err := g.round(ctx); err != nil {
			return err
		}
	}
	for _, p := range g.crew {
		p.retired = true
		p.terminate()
	}
	return g.await(ctx, "end the last clients", func() (bool, error) { return len(g.crew) == 0, nil })
}

// round kills or stops one client at the point, and ends when all is settled: a
// message that is under way at three deaths is dead, and that would be right.
func (g *clients) round(ctx context.Context) error {
	redelivered, began := g.redelivered, time.Now()
	if err := g.hunt(ctx); err != nil {
		return err
	}
	if err := g.publish(ctx); err != nil { // behind what was in flight
		return err
	}
	if err := g.await(ctx, "settle what was in flight", func() (bool, error) { return g.settled(ctx) }); err != nil {
		return err
	}
	g.log("kill %3d/%-3d redelivered %3d  all settled after %4.1fs", g.killed, g.kills, g.redelivered-redelivered, time.Since(began).Seconds())
	return nil
}

// hunt arms all clients and stores messages, until one was killed at the point, or
// stopped there and woken.
func (g *clients) hunt(ctx context.Context) error {
	before := g.killed
	for range maxWaves {
		g.arm(g.crew...)
		if err := g.publish(ctx); err != nil {
			return err
		}
		err := g.await(ctx, "reach the point", func() (bool, error) {
			if g.killed > before && !g.dying() && g.asleep == nil {
				return true, nil
			}
			settled, err := g.settled(ctx)
			if settled && g.asleep != nil { // all that others could do is done
				g.wake()
			}
			return settled, err
		})
		if err != nil || g.killed > before {
			return err
		}
	}
	return fmt.Errorf("reach the point: no call did in %d waves", maxWaves)
}

// publish stores a wave of messages of all kinds.
func (g *clients) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	kinds := []string{wire.Keyed, wire.Asked, wire.AskedFirst, wire.Asked}
	wave := make([]*handler.Message, callWave)
	for i := range wave {
		n := len(g.sent) + i
		wave[i] = &handler.Message{
			ID: fmt.Sprintf("%s-%06d", g.name, n), Type: kinds[n%len(kinds)],
			Payload: fmt.Appendf(nil, `{"number":%q,"tax_number":"DE123456789","amount":%d}`, numberOf(n), n),
			Headers: handler.Headers{wire.CopyHeader(n)},
		}
	}
	g.sent = append(g.sent, wave...)
	_, err := g.inbox.StoreAll(ctx, wave)
	return err
}

// numberOf is the business number of a message's invoice.
func numberOf(n int) string { return fmt.Sprintf("I-%06d", n) }

// settled reports that nothing is under way any more. What a stopped client has in
// hand others will have done.
func (g *clients) settled(ctx context.Context) (bool, error) {
	busy := slices.ContainsFunc(g.crew, func(p *client) bool { return p != g.asleep && len(p.hand) > 0 })
	if busy || g.dying() {
		return false, nil
	}
	s, err := g.store.stock(ctx)
	if s != g.stock {
		g.stock, g.moved = s, time.Now()
	}
	s.undecided = 0 // they are counted
	return s == stock{}, err
}

// await handles events until done. It gives up when nothing happens for a while.
func (g *clients) await(ctx context.Context, what string, done func() (bool, error)) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	g.moved = time.Now()
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		select {
		case e := <-g.events:
			g.moved = time.Now()
			if err := g.apply(e); err != nil {
				return err
			}
		case <-look.C:
			if g.asleep != nil && !g.wakeAt.IsZero() && time.Now().After(g.wakeAt) {
				g.wake()
			}
			if time.Since(g.moved) > g.config.Patience {
				return fmt.Errorf("%s: %w (for %s; %s)", what, errStuck, g.config.Patience, g.stock)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
