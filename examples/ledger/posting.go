package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/semel-go/semel/outbox"
)

// What the tables of the ledger hold, see tables.sql.
const (
	buyers  = 10_000
	sellers = 2_000
)

// posting moves an amount from one account to another, and an order to a status.
type posting struct {
	id       string
	order    string
	status   string
	sequence int64 // of the order's changes
	from, to string
	amount   int64
}

// The life of an order: what is paid belongs to the seller once it is settled.
const (
	paid    = "paid"
	settled = "settled"

	pending   = "/pending"
	available = "/available"
)

// till makes the postings of orders. It is one connection's; the numbers are
// everybody's.
type till struct {
	orders *atomic.Int64 // numbers that are given
	paid   []posting     // committed, and not settled
}

// next returns n postings: half of them settle what was paid before.
func (t *till) next(n int) []posting {
	settling := min((n+1)/2, len(t.paid))
	postings := make([]posting, 0, n)
	for _, p := range t.paid[:settling] {
		postings = append(postings, posting{
			id: outbox.NewID(), order: p.order, status: settled, sequence: p.sequence + 1,
			from: p.to, to: strings.TrimSuffix(p.to, pending) + available, amount: p.amount,
		})
	}
	t.paid = t.paid[settling:]
	for len(postings) < n {
		postings = append(postings, posting{
			id: outbox.NewID(), order: fmt.Sprintf("order-%d", t.orders.Add(1)), status: paid, sequence: 1,
			from:   fmt.Sprintf("buyer-%d", 1+rand.IntN(buyers)),
			to:     fmt.Sprintf("seller-%d", 1+rand.IntN(sellers)) + pending,
			amount: 1 + rand.Int64N(20_000),
		})
	}
	return postings
}

// committed is told what was booked.
func (t *till) committed(postings []posting) {
	for _, p := range postings {
		if p.status == paid {
			t.paid = append(t.paid, p)
		}
	}
}
