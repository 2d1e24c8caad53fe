package webhook

import (
	"sync/atomic"

	"github.com/semel-go/semel/handler"
)

// Stats is how many requests ended how since the handler was made.
type Stats struct {
	// Settled and answered 200, by what became of them.
	Stored, Processed, Duplicate, Superseded, Skipped, Dead, Mismatch int64

	// Ignored were answered 200 and not stored, as Config.Types has it, and NotLive,
	// as Config.RequireLive has it.
	Ignored, NotLive int64

	// Failed could not be stored, and Late not in time: they were answered 503.
	Failed, Late int64

	// WrongSignature did not hold against any secret, and Unsigned had no signature
	// or one that cannot be read: they were answered 401. Many of them mean a wrong
	// secret, or somebody at the door.
	WrongSignature, Unsigned int64

	// TooOld and TooNew were signed outside the tolerance and answered 401. Many of
	// them mean a wrong clock, ours or the provider's.
	TooOld, TooNew int64

	// Refused for their form: 405, 413, 415 (content type or encoding), 408, 400.
	WrongMethod, TooLarge, WrongType, Slow, Torn int64
}

type counters [lastEnding + 1]atomic.Int64

// Stats returns a snapshot.
func (h *Handler) Stats() Stats {
	n := func(ends ...ending) (sum int64) {
		for _, end := range ends {
			sum += h.counts[end].Load()
		}
		return sum
	}
	of := func(o handler.Outcome) int64 { return n(settled + ending(o)) }
	return Stats{
		Stored: of(handler.Stored), Processed: of(handler.Processed), Duplicate: of(handler.Duplicate), Superseded: of(handler.Superseded),
		Skipped: of(handler.Skipped), Dead: of(handler.Dead), Mismatch: of(handler.Mismatch),
		Ignored: n(ignored), NotLive: n(notLive),
		Failed: n(failed), Late: n(late),
		WrongSignature: n(wrong), Unsigned: n(unsigned, repeated, malformed),
		TooOld: n(tooOld), TooNew: n(tooNew),
		WrongMethod: n(wrongMethod), TooLarge: n(tooLarge), WrongType: n(wrongType, encoded), Slow: n(slow), Torn: n(torn),
	}
}
