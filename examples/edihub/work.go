package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/example"
)

var hubs = [...]string{"hub-1", "hub-2"}

// kill is a process that is killed at a moment of its work.
type kill struct {
	process, moment string
	nth             int64
	says            string
}

var kills = [...]kill{
	{hubs[0], storedMoment, 5, "an interchange is in the claim-check store and in no row"},
	{hubs[1], answerMoment, 20, "a message is committed and its MDN has not left"},
	{"relay", confirmedMoment, 2, "events are on the topic and the outbox does not know"},
	{transforming, redeemedMoment, 40, "its transaction is open"},
	{archiving, copiedMoment, 61, "a copy is in the archive and in no row"},
}

// work posts while processes are killed, and returns when all consumers have
// learned of everything.
func (r *run) work(ctx context.Context, posts []post) error {
	moments := make(chan string, len(kills))
	var members []crew.Member
	for name, part := range map[string]string{
		hubs[0]: hubPart, hubs[1]: hubPart, "relay": relayPart, transforming: transformPart, archiving: archivePart,
	} {
		config := &partConfig{Services: r.Services(name), Claims: r.claims, Archive: r.archive}
		for _, k := range kills {
			if k.process == name {
				config.Moment, config.Nth = k.moment, k.nth
			}
		}
		members = append(members, crew.Member{Name: name, Part: part, Config: config, Prints: func(line string) {
			if line == config.Moment {
				moments <- name
			} else {
				r.partners.found(name, line)
			}
		}})
		r.configs[name] = config
	}
	c, err := r.Crew(members...)
	if err != nil {
		return err
	}
	return r.Work(ctx, example.Work{
		Crew: c,
		Tasks: []func(context.Context) error{func(ctx context.Context) error {
			g, postCtx := errgroup.WithContext(ctx)
			g.Go(func() error {
				if err := r.partners.postAll(postCtx, posts, r.rate); err != nil {
					return err
				}
				return r.partners.post(postCtx, changed(posts))
			})
			g.Go(func() error { return r.killAll(postCtx, c, moments) })
			g.Go(func() error { return r.takeStoreAway(postCtx) })
			if err := g.Wait(); err != nil || r.address == "" {
				return err
			}
			return r.listen(ctx)
		}},
		Progress: r.progress,
	})
}

// killAll kills each process that comes to its moment. Another one takes its
// place, which has none.
func (r *run) killAll(ctx context.Context, c *crew.Crew, moments <-chan string) error {
	for range kills {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case name := <-moments:
			if err := c.Replace(name, func() {
				r.configs[name].Nth = 0
				r.partners.gone(name)
			}); err != nil {
				return err
			}
			for _, k := range kills {
				if k.process == name {
					r.Say("%s killed with SIGKILL while %s; another process takes its place", name, k.says)
				}
			}
		}
	}
	return nil
}

// takeStoreAway takes the claim-check store away for a while, as an unmounted disk.
func (r *run) takeStoreAway(ctx context.Context) error {
	const lead, away = 6 * time.Second, 2 * time.Second
	elsewhere := r.claims + ".away"
	return example.InTurn(ctx,
		example.Step{After: lead, Do: func() error {
			r.Say("the claim-check store is away now, for %s: nothing is acknowledged", away)
			return os.Rename(r.claims, elsewhere)
		}},
		example.Step{After: away, Do: func() error {
			r.Say("the claim-check store is back")
			return os.Rename(elsewhere, r.claims)
		}},
	)
}

// progress says how far the work is.
func (r *run) progress(ctx context.Context) (string, error) {
	var journaled, transformed, archived int64
	if err := r.Pool.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM interchanges),
		       (SELECT count(*) FROM documents),
		       (SELECT count(*) FROM archived)`).Scan(&journaled, &transformed, &archived); err != nil {
		return "", fmt.Errorf("look how far the work is: %w", err)
	}
	return fmt.Sprintf("%5d posts answered %5d messages journaled %5d transformed %5d archived",
		r.partners.posted.Load(), journaled, transformed, archived), nil
}
