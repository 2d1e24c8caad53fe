package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// changes are the rows of many postings, column by column: a statement for each
// table, however many there are, and one round trip for all of them.
type changes struct {
	postings postingColumns
	entries  entryColumns
	accounts accountColumns
	orders   orderColumns
}

type postingColumns struct {
	ids, orders []string
	amounts     []int64
}

func (c *postingColumns) add(p posting) {
	c.ids, c.orders, c.amounts = append(c.ids, p.id), append(c.orders, p.order), append(c.amounts, p.amount)
}

type entryColumns struct {
	postings, accounts           []string
	amounts, balances, sequences []int64
}

func (c *entryColumns) add(posting, id string, amount int64, a account) {
	c.postings, c.accounts, c.amounts = append(c.postings, posting), append(c.accounts, id), append(c.amounts, amount)
	c.balances, c.sequences = append(c.balances, a.balance), append(c.sequences, a.sequence)
}

type accountColumns struct {
	ids                 []string
	balances, sequences []int64
}

func (c *accountColumns) add(id string, a account) {
	c.ids, c.balances, c.sequences = append(c.ids, id), append(c.balances, a.balance), append(c.sequences, a.sequence)
}

type orderColumns struct {
	ids, statuses []string
	sequences     []int64
}

func (c *orderColumns) add(p posting) {
	c.ids, c.statuses, c.sequences = append(c.ids, p.order), append(c.statuses, p.status), append(c.sequences, p.sequence)
}

func (c *changes) send(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO postings (id, order_id, amount)
		SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[])`,
		c.postings.ids, c.postings.orders, c.postings.amounts)
	b.Queue(`INSERT INTO entries (posting, account, amount, balance, sequence)
		SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])`,
		c.entries.postings, c.entries.accounts, c.entries.amounts, c.entries.balances, c.entries.sequences)
	b.Queue(`UPDATE accounts AS a SET balance = c.balance, sequence = c.sequence
		FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS c (id, balance, sequence)
		WHERE a.id = c.id`,
		c.accounts.ids, c.accounts.balances, c.accounts.sequences)
	b.Queue(`INSERT INTO orders (id, status, sequence)
		SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
		ON CONFLICT (id) DO UPDATE SET status = excluded.status, sequence = excluded.sequence`,
		c.orders.ids, c.orders.statuses, c.orders.sequences)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write the books: %w", err)
	}
	return nil
}
