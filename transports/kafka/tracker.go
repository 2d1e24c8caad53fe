package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// tracker knows what of one partition may be committed: the lowest record in
// flight, or the highest record plus one when none is.
//
// It counts no "next expected offset": offsets have gaps where records were
// compacted away or belong to a transaction. It is not safe for concurrent
// use.
type tracker struct {
	entries []*entry // from the lowest that is not settled on, in the order of offsets
	next    int64    // the highest offset taken, or the committed one, plus one; unknown before either
	epoch   int32    // leader epoch of the last record that left entries

	taken     amount // all that was taken
	passed    amount // of it, what lies before the lowest in flight
	committed amount // of it, what lies before the committed offset
}

// unknown is the next offset of a partition nothing is known about.
const unknown int64 = -1

// entry is one record from the moment it was fetched.
type entry struct {
	record    *kgo.Record // nil once settled: the payload need not wait for the window
	offset    int64
	epoch     int32
	bytes     int64
	settled   bool
	delivered bool // handed out before, or it may have been by an owner that died
}

// amount is a number of records and their size.
type amount struct {
	records int
	bytes   int64
}

func (a amount) minus(b amount) amount { return amount{a.records - b.records, a.bytes - b.bytes} }

// mark is an offset to commit, how much lies before it, and what the commit says
// about its owner.
type mark struct {
	offset kgo.EpochOffset
	passed amount
	owner  string
}

// follows reports whether a record at offset comes after all that was taken. If
// it does not, the log was rewound and the tracker is worth nothing any more.
func (t *tracker) follows(offset int64) bool { return offset >= t.next }

// take adds a record, which must follow.
func (t *tracker) take(r *kgo.Record) *entry {
	e := &entry{record: r, offset: r.Offset, epoch: r.LeaderEpoch, bytes: recordBytes(r)}
	t.entries = append(t.entries, e)
	t.next = r.Offset + 1
	t.taken.records++
	t.taken.bytes += e.bytes
	return e
}

// settle marks e, which may be any of those in flight.
func (t *tracker) settle(e *entry) {
	e.settled, e.record = true, nil
	t.pass()
}

// passFirst leaves the first record behind.
func (t *tracker) passFirst() {
	first := t.entries[0]
	t.entries[0] = nil // or the array behind the slice keeps it alive
	t.entries = t.entries[1:]
	t.epoch = first.epoch
	t.passed.records++
	t.passed.bytes += first.bytes
}

// position returns what may be committed now. There is nothing to commit
// before the first record was taken: where a new group starts is not known.
func (t *tracker) position() (m mark, ok bool) {
	if t.taken.records == 0 {
		return mark{}, false
	}
	at := kgo.EpochOffset{Epoch: t.epoch, Offset: t.next}
	if len(t.entries) > 0 {
		at.Offset = t.entries[0].offset
	}
	if t.passed.records == 0 {
		at.Epoch = t.entries[0].epoch
	}
	return mark{offset: at, passed: t.passed}, true
}

// commit notes that the broker has m.
func (t *tracker) commit(m mark) {
	if m.passed.records > t.committed.records {
		t.committed = m.passed
	}
}

// uncommitted is what was passed and not committed yet.
func (t *tracker) uncommitted() amount { return t.passed.minus(t.committed) }

// window is all that was taken past the committed offset.
func (t *tracker) window() amount { return t.taken.minus(t.committed) }

func recordBytes(r *kgo.Record) int64 {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(n)
}
