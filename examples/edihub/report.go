package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/outbox"
)

// report tells a person what was posted and what became of it, and ends with the
// RESULT line.
func (r *run) report(ctx context.Context, posts int) error {
	if err := r.partners.store(ctx, r.Pool); err != nil {
		return err
	}
	counted, err := countMessages(ctx, r.Pool, r.Schema, outbox.DirectoryArchive(r.archive))
	if err != nil {
		return err
	}
	res := result{posts, counted}
	letters, err := listDeadLetters(ctx, r.Pool, r.Schema)
	if err != nil {
		return err
	}
	again, refused := 0, 0
	for _, n := range r.partners.mdns {
		again += n - 1
	}
	for _, n := range r.partners.said {
		refused += n
	}
	r.Table("What was posted",
		example.Count(posts, "posts"),
		example.Count(r.partners.repeated.Load(), "posted once more, since no answer came"),
		example.Count(refused, "refused, each with a reason"),
		example.Count(again, "answered with the MDN that the partner had already, byte for byte"),
		example.Count(len(kills), "processes killed"),
	)
	r.Table("What became of it",
		example.Count(res.messages, "messages journaled, each with its event and its MDN in the same transaction"),
		example.Count(res.mdns, "MDNs that partners hold"),
		example.Count(res.events, "events on the topic"),
		example.Count(res.transformed, "made canonical JSON"),
		example.Count(res.dead, "dead letters: in front of a person, with segment and position"),
		example.Count(res.mismatches, "dead letters for another content under a Message-ID that was taken"),
		example.Count(res.archived, "archived until %d years from now, and read back", keptYears),
		example.Count(res.lost, "lost"),
		example.Count(res.doubled, "doubled"),
	)
	fmt.Fprintln(r.Out, "\nWhat was refused, and why")
	for _, why := range slices.Sorted(maps.Keys(r.partners.said)) {
		fmt.Fprintf(r.Out, "  %s\n", example.Shorten(why, 150))
	}
	fmt.Fprintln(r.Out, "\nWhat is in front of a person, and why")
	for _, letter := range letters {
		fmt.Fprintf(r.Out, "  %s\n", example.Shorten(letter, 150))
	}
	return r.Conclude(ctx, res)
}
