package kafka

import "math"

// What a commit says about its owner, as its metadata.
//
// Only ownerRunning makes records suspect. Another client's metadata, that of a
// Semel which wrote none of these, and none at all say nothing about a crash;
// suspecting them would run a whole window one by one whenever a group moves
// here or a tool sets its offsets. If the owner before did crash, that costs
// one more crash: this one's commit says ownerRunning before its first record
// is handed out.
const (
	ownerRunning = "semel running" // records from the offset on may be handed out
	ownerDrained = "semel drained" // none is, and none of an earlier owner that died is left
)

// suspicion knows which records an owner that died may have had in flight: of
// those that follow its commit, as many as it may have handed out. It counts
// records, since offsets have gaps. The zero value suspects none.
type suspicion struct {
	left int   // how many more at most
	end  int64 // none from this offset on
}

// notRead is the end of a suspicion before anything was fetched.
const notRead = math.MaxInt64

func suspect(records int) suspicion { return suspicion{left: records, end: notRead} }

// logEnds says where the log ended when it was first fetched: what came later
// was not there for the owner that died.
func (s *suspicion) logEnds(offset int64) {
	if s.end == notRead {
		s.end = offset
	}
}

// covers reports whether the next record is suspect. It must be asked once for
// each record, in order.
func (s *suspicion) covers(offset int64) bool {
	if offset >= s.end {
		return false
	}
	s.left--
	if s.left == 0 {
		s.end = offset + 1
	}
	return true
}

// over reports whether no suspect is at offset or after it.
func (s *suspicion) over(offset int64) bool { return offset >= s.end }

// reach is how many records an owner may have handed out past its commit: its
// whole window, whatever its share was, and the last poll's overshoot. It takes
// the owner before for one with the same window; if that was larger, what this
// misses is found after one more crash.
func (m *member) reach() int { return m.window.records + pollRecords - 1 }
