package kafka

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The client calls the methods below one after the other, from the goroutine
// that manages the group. Heartbeats go on meanwhile; so do polls, since the
// client was not told to block them.

// assigned starts the new partitions. The client has dropped whatever it had
// fetched of earlier assignments and fetches nothing of the new ones before
// this returns.
func (m *member) assigned(ctx context.Context, partitions map[string][]int32) {
	m.note("assigned", partitions)
	m.polls.wait()
	for topic, ids := range partitions {
		for _, id := range ids {
			m.assign(ctx, partition{topic, id})
		}
	}
}

// offsetsFetched learns where the group stands in the new partitions, to
// notice when the log is not there any more. It changes nothing.
func (m *member) offsetsFetched(_ context.Context, topics map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	start := m.client.OptValue(kgo.ConsumeStartOffset)
	for topic, offsets := range topics {
		for id, offset := range offsets {
			committed := offset.EpochOffset().Offset
			if a := m.assignment(partition{topic, id}); a != nil && committed >= 0 && offset != start {
				a.startAt(committed)
			}
		}
	}
	return topics, nil
}

// revoked gives partitions back: stop, let what is out finish, commit, let go.
func (m *member) revoked(partitions map[string][]int32) {
	m.note("revoked", partitions)
	ended := m.end(partitions)
	deadline := time.NewTimer(m.drain)
	defer deadline.Stop()
	abandoned := 0
	for _, a := range ended {
		select {
		case <-a.idle:
		case <-deadline.C:
			deadline.Reset(0) // and so do the rest
			abandoned++
		}
	}
	if abandoned > 0 {
		m.report.logger.Warn("revoked partitions were let go with deliveries still running; these records come again",
			slog.Int("partitions", abandoned), slog.Duration("drain_timeout", m.drain))
	}
	if len(ended) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), m.revokeCommit)
		defer cancel()
		m.commits.flush(ctx)
	}
	m.forget(ended)
}

// lost drops partitions that belong to another member already: it waits for
// nothing, and what it could commit would be refused.
func (m *member) lost(partitions map[string][]int32) {
	m.note("lost", partitions)
	m.forget(m.end(partitions))
}

func (m *member) note(what string, partitions map[string][]int32) {
	n := 0
	for _, ids := range partitions {
		n += len(ids)
	}
	if n > 0 { // a rebalance that changes nothing is told as well
		m.report.logger.Info("the group has rebalanced", slog.String("partitions", what), slog.Int("count", n))
	}
}

// assign makes the assignment of a partition and starts its worker. It returns
// nil when the Run is ending.
func (m *member) assign(ctx context.Context, p partition) *assignment {
	ctx, stop := context.WithCancel(ctx)
	a := newAssignment(m, p, stop)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending {
		stop()
		return nil
	}
	m.assignments[p] = a
	m.shares.Store(int64(len(m.assignments)))
	m.workers.Go(func() { a.work(ctx) })
	return a
}

// replace ends an assignment without a commit and starts another of the same
// partition, unless the partition was taken away meanwhile.
func (m *member) replace(ctx context.Context, a *assignment) *assignment {
	if !m.forget([]*assignment{a}) {
		return nil
	}
	a.end()
	return m.assign(ctx, a.partition)
}

// end ends the assignments of partitions. They stay among those that are
// committed.
func (m *member) end(partitions map[string][]int32) []*assignment {
	var ended []*assignment
	for topic, ids := range partitions {
		for _, id := range ids {
			if a := m.assignment(partition{topic, id}); a != nil {
				a.end()
				ended = append(ended, a)
			}
		}
	}
	return ended
}

// forget removes assignments, if they are still the current ones, and reports
// whether all were.
func (m *member) forget(assignments []*assignment) (all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all = true
	for _, a := range assignments {
		if m.assignments[a.partition] == a {
			delete(m.assignments, a.partition)
		} else {
			all = false
		}
	}
	m.shares.Store(int64(len(m.assignments)))
	return all
}

func (m *member) assignment(p partition) *assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.assignments[p]
}
