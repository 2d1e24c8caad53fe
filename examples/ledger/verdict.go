package main

import (
	"fmt"
	"slices"
)

// nearly is how much of what was offered must be achieved to say that it was.
const nearly = 0.98

// verdict says which part saturates, where less was achieved than offered, from what
// the writer told last and from how much of one of so many processors each part used.
func (r result) verdict(writer news, shares []share, processors int) string {
	if float64(r.achieved()) >= nearly*float64(r.offered) {
		return ""
	}
	told := fmt.Sprintf("%d of %d events a second: ", r.achieved(), r.offered)
	if r.writerBehind(writer) {
		told += fmt.Sprintf("the writer was behind, each of its connections in a transaction for %d %% of the time.", percent(writer.Busy, writer.Took))
		return told + whoComputes(shares, processors)
	}
	told += fmt.Sprintf("the relays were behind: they needed %.1f s for what was written in %.1f s.", r.took.Seconds(), writer.Took.Seconds())
	if r.kills > 0 {
		return told + fmt.Sprintf(" One was killed, and its events waited for its lease of %s.", lease)
	}
	return told + whoComputes(shares, processors)
}

// writerBehind reports that postings were not booked, or not when they came.
func (r result) writerBehind(writer news) bool {
	return float64(r.written) < nearly*float64(r.offered)*r.length.Seconds() || nearly*writer.Took.Seconds() > r.length.Seconds()
}

// whoComputes says whether the processors are what saturates, and who uses the most.
func whoComputes(shares []share, processors int) string {
	if len(shares) == 0 {
		return ""
	}
	machine, parts := shares[0], shares[1:]
	if machine.percent < int64(90*processors) {
		return " The processors had time left: it waited for locks, for a disk, or for answers."
	}
	most := slices.MaxFunc(parts, func(a, b share) int { return int(a.percent - b.percent) })
	return fmt.Sprintf(" The processors were busy, and are what saturates; the most, %d %% of one, went to: %s.", most.percent, most.who)
}
