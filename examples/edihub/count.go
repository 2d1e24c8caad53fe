package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

//go:embed tables.sql
var tablesSQL string

//go:embed count.sql
var countSQL string

// counts is what tables and archive tell of the messages.
type counts struct {
	messages, mdns, events, transformed, archived, lost, doubled int64

	mismatches, dead int64 // for people
}

// countMessages reads the truth from the tables and from the archive: no counter
// of a process, which may be dead, is trusted. A copy that cannot be read back is
// lost.
func countMessages(ctx context.Context, pool *pgxpool.Pool, schemaName string, store outbox.ArchiveStore) (c counts, err error) {
	err = pool.QueryRow(ctx, schema.Qualify(countSQL, schemaName)).
		Scan(&c.messages, &c.mdns, &c.events, &c.transformed, &c.archived, &c.lost, &c.doubled, &c.mismatches, &c.dead)
	if err != nil {
		return c, fmt.Errorf("count what became of the messages: %w", err)
	}
	rows, err := pool.Query(ctx, `SELECT object, sha256 FROM archived`)
	if err != nil {
		return c, fmt.Errorf("list what is archived: %w", err)
	}
	var object, sha256 string
	_, err = pgx.ForEachRow(rows, []any{&object, &sha256}, func() error {
		if verify(ctx, store, object, sha256) != nil {
			c.lost++
		}
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("list what is archived: %w", err)
	}
	return c, nil
}

// listDeadLetters says of each dead letter which message it is and what is wrong.
func listDeadLetters(ctx context.Context, pool *pgxpool.Pool, schemaName string) ([]string, error) {
	rows, err := pool.Query(ctx, schema.Qualify(`
		SELECT coalesce(correlation_id, message_text, '') || ': ' || reason || coalesce(': ' || errors[1], '')
		FROM semel.dead_letters
		ORDER BY id
		LIMIT 20`, schemaName))
	if err != nil {
		return nil, fmt.Errorf("list the dead letters: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// result is the sum of a run. Posts come from the input.
type result struct {
	posts int
	counts
}

// OK reports that each message is journaled, told, transformed or in front of a
// person, and archived, once.
func (r result) OK() bool { return r.lost == 0 && r.doubled == 0 }

func (r result) String() string {
	return fmt.Sprintf("RESULT posts=%d messages=%d mdn=%d events=%d transformed=%d archived=%d lost=%d doubled=%d",
		r.posts, r.messages, r.mdns, r.events, r.transformed, r.archived, r.lost, r.doubled)
}
