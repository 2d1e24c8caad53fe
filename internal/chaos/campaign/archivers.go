package campaign

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/schema"
)

var (
	//go:embed queries/archive_wave.sql
	archiveWaveSQL string
	//go:embed queries/archive_stock.sql
	archiveStockSQL string
)

const (
	archiveWave = 3000 // events of a wave
	inPayload   = 4    // hashes

	// tornObjects is how many objects get a byte flipped at the end.
	tornObjects = 5
)

// archivers is the processes of one point that archive and purge. All of it but the
// sending end of events belongs to the goroutine that runs it.
type archivers struct {
	spec
	config Config
	name   string // of the schema
	binary string
	dir    string // the archive
	store  store
	log    func(format string, args ...any)

	sent        int // events, numbered from 1 on
	books       archiveBooks
	crew        []*process // that live
	events      chan event
	hands       map[*process]string // the objects of those that are about to die
	killed      int                 // that count
	missed      int                 // were too late
	redelivered int                 // batches that others went on with
	stock       string              // at the last look
	moved       time.Time           // when something happened last
}

// archivers runs the group of one point of a purge from its empty schema to the count.
func (c *campaign) archivers(ctx context.Context, s spec) (result Result) {
	result.spec = s
	name := fmt.Sprintf("chaos_%s_%s_%s", c.id, s.broker, strings.ReplaceAll(string(s.point), "-", "_"))
	fail := func(err error) { result.Err = errors.Join(result.Err, err) }
	cleanup := func(do func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		fail(do(ctx))
	}

	defer cleanup(func(ctx context.Context) error { return dropStore(ctx, c.pool, name) })
	g := &archivers{
		spec: s, config: c.config, name: name, binary: c.binaries[archiverProgram],
		dir: filepath.Join(c.dir, name), store: store{c.pool, name},
		log:    func(format string, args ...any) { c.log(s, format, args...) },
		events: make(chan event, 1024), hands: map[*process]string{},
	}
	g.books = archiveBooks{store: g.store, dir: g.dir}
	err := createStore(ctx, c.pool, name)
	if err == nil {
		err = g.books.open()
	}
	if err != nil {
		fail(err)
		return result
	}
	fail(g.run(ctx))
	cleanup(func(ctx context.Context) (err error) {
		result.Tally, err = g.books.count(ctx, g.sent)
		return errors.Join(err, g.books.tear(tornObjects))
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

// run goes through all rounds and lets the last archivers end as they should.
func (g *archivers) run(ctx context.Context) error {
	defer g.abandon()
	for range 2 { // they are at each other's batches
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
	return g.await(ctx, "end the last archivers", func() (bool, error) { return len(g.crew) == 0, nil })
}

// round kills one archiver at the point, and ends when all is archived.
func (g *archivers) round(ctx context.Context) error {
	before, began := g.killed, time.Now()
	for wave := 0; g.killed == before; wave++ {
		if wave == maxWaves {
			return fmt.Errorf("reach the point: no batch did in %d waves, and %d were killed too late", maxWaves, g.missed)
		}
		g.arm(wire.Order{Point: g.point, Skip: g.skip()})
		if err := g.publish(ctx); err != nil {
			return err
		}
		if err := g.await(ctx, "archive what is old", func() (bool, error) { return g.settled(ctx) }); err != nil {
			return err
		}
	}
	g.redelivered += g.killed - before // none is open, so others have finished them
	g.log("kill %3d/%-3d redelivered %3d  too late %d  all archived after %4.1fs", g.killed, g.kills, g.redelivered, g.missed, time.Since(began).Seconds())
	return nil
}

// skip is how many batches, or deletions, pass before one is held.
func (g *archivers) skip() int {
	if g.point == wire.MidDelete {
		return rand.IntN(archiveWave * 8 / 10 / 1000) // the first ones of a batch
	}
	return 0
}

func (g *archivers) arm(o wire.Order) {
	for _, p := range g.crew {
		p.order(o)
	}
}

// publish writes a wave of old events.
func (g *archivers) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	_, err := g.store.pool.Exec(ctx, schema.Qualify(archiveWaveSQL, g.name), g.sent+1, g.sent+archiveWave, inPayload)
	if err != nil {
		return fmt.Errorf("write old events into schema %q: %w", g.name, err)
	}
	g.sent += archiveWave
	return nil
}

// settled reports that nothing is to be archived any more, and nobody is about to die.
func (g *archivers) settled(ctx context.Context) (bool, error) {
	left, object, err := g.look(ctx)
	if stock := fmt.Sprintf("%d events are not archived, object %q is under way", left, object); stock != g.stock {
		g.stock, g.moved = stock, time.Now()
	}
	dying := slices.ContainsFunc(g.crew, func(p *process) bool { return p.doomed })
	return left == 0 && object == "" && !dying, err
}

func (g *archivers) look(ctx context.Context) (left int, object string, err error) {
	err = g.store.pool.QueryRow(ctx, schema.Qualify(archiveStockSQL, g.name)).Scan(&left, &object)
	if err != nil {
		return 0, "", fmt.Errorf("look what is archived of schema %q: %w", g.name, err)
	}
	return left, object, nil
}
