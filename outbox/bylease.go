package outbox

import "iter"

// byLease is something of each lease, by its first shard; the zero value is none.
// Each event is looked up in it several times: a map is too slow.
type byLease[T comparable] [leases]T

func (b *byLease[T]) at(lo int16) T { return b[lo/shardsOfLease] }

func (b *byLease[T]) put(lo int16, v T) { b[lo/shardsOfLease] = v }

// all may be changed while it is walked through.
func (b *byLease[T]) all() iter.Seq2[int16, T] {
	return func(yield func(int16, T) bool) {
		var none T
		for i, v := range b {
			if v != none && !yield(int16(i*shardsOfLease), v) { //nolint:gosec // below 256
				return
			}
		}
	}
}
