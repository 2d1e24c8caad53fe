package main

import (
	"fmt"
	"time"
)

// nearly is how much of what was offered must be achieved to say that it was.
const nearly = 0.98

// verdict says which part saturates, where less was achieved than offered, from what
// the writer told last and from how much of one of so many processors each part used.
func (r result) verdict(writer news, shares []share, processors int) string {
	offered := float64(r.offered) * r.length.Seconds()
	if float64(r.achieved()) >= nearly*float64(r.offered) {
		return ""
	}
	told := fmt.Sprintf("%d of %d events a second: ", r.achieved(), r.offered)
	if float64(r.written) < nearly*offered || writer.Took > r.length+time.Second {
		told += fmt.Sprintf("the writer was behind, each of its connections in a transaction for %d %% of the time", percent(writer.Busy, writer.Took))
	} else {
		told += fmt.Sprintf("the relays were behind: they needed %.1f s for what was written in %.1f s", r.took.Seconds(), writer.Took.Seconds())
	}
	if r.kills > 0 {
		told += fmt.Sprintf(". One was killed, and its events waited for its lease of %s", lease)
	}
	switch {
	case len(shares) == 0:
		return told + "."
	case shares[0].percent < int64(90*processors):
		return told + ". The processors were not the reason, they had time left: it waited for locks, for a disk, or for answers."
	}
	most := shares[1]
	for _, s := range shares[1:] {
		if s.percent > most.percent {
			most = s
		}
	}
	return told + fmt.Sprintf(". The processors were busy, and are what saturates; the most, %d %% of one, went to: %s.", most.percent, most.who)
}
