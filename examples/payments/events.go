package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
)

// fixtures are the events of one order, one a line in the order of the kinds
// below, as a payment provider would send them.
//
//go:embed events.jsonl
var fixtures string

// Kinds of events. From torn on they are poison. A refund was made later than its
// payment, a refusal earlier, in whatever order they are told.
const (
	paidEvent     = iota
	refundedEvent // of one order in five
	declinedEvent // a card that was refused first, of one order in eight
	tornEvent     // the body breaks off: undecodable
	unknownEvent  // a type that the handler has no route for
	zeroEvent     // an amount that the handler refuses
	mismatchEvent // the id of the order's payment with another amount
)

const (
	copies    = 3   // of each line: a provider sends again until it gets an answer
	poisonOne = 100 // one order in so many has one poison of each kind
	customers = 40  // few, so that orders meet on the balance of an account
)

// generateEvents returns the events of so many orders as JSON Lines: each three
// times, shuffled, so that refunds come before their payments. It is the same
// for every run.
func generateEvents(orders int) []byte {
	kinds := strings.Split(strings.TrimSpace(fixtures), "\n")
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same every time
	var lines []string
	for n := 1; n <= orders; n++ {
		order := strings.NewReplacer(
			"01007", fmt.Sprintf("%05d", n),
			"Rv07", fmt.Sprintf("Rv%02d", random.IntN(customers)),
			"1767220907", fmt.Sprint(1767220000+n-100),
			"1767221007", fmt.Sprint(1767220000+n),
			"1767224607", fmt.Sprint(1767220000+n+3600),
			"4207", fmt.Sprint(100+random.IntN(9900)),
		)
		add := func(kind, times int) {
			line := order.Replace(kinds[kind])
			for left := range times { // how many endpoints the provider waits for changes from copy to copy
				lines = append(lines, strings.Replace(line, `"pending_webhooks":9`, fmt.Sprintf(`"pending_webhooks":%d`, left+1), 1))
			}
		}
		add(paidEvent, copies)
		if n%5 == 0 {
			add(refundedEvent, copies)
		}
		if n%8 == 0 {
			add(declinedEvent, copies)
		}
		if n%poisonOne == 7 {
			for kind := tornEvent; kind <= mismatchEvent; kind++ {
				add(kind, copies)
			}
		}
	}
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })

	var out bytes.Buffer
	for _, line := range lines {
		out.WriteString(line)
		out.WriteByte('\n')
	}
	return out.Bytes()
}
