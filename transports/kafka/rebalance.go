package kafka

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
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

// offsetsFetched learns where the group stands in the new partitions, to notice
// when the log is not there any more, and whether their last owners drained.
// The client fetches nothing of them before this returns.
func (m *member) offsetsFetched(ctx context.Context, _ *kgo.Client, fetched *kmsg.OffsetFetchResponse) error {
	suspected := 0
	for i := range fetched.Groups {
		for j := range fetched.Groups[i].Topics {
			topic := &fetched.Groups[i].Topics[j]
			for k := range topic.Partitions {
				p := &topic.Partitions[k]
				a := m.assignment(partition{topic.Topic, p.Partition})
				if a == nil || p.ErrorCode != 0 || p.Offset < 0 { // -1: nothing is committed
					continue
				}
				told := ""
				if p.Metadata != nil {
					told = *p.Metadata
				}
				if a.startAt(p.Offset, told) {
					suspected++
				}
			}
		}
	}
	if suspected > 0 {
		m.report.logger.InfoContext(ctx, "the last owners of partitions did not drain them; records that may have been in flight are delivered as redelivered",
			slog.Int("partitions", suspected), slog.Int("records_each_at_most", m.reach()))
	}
	return nil
}

// revoked gives partitions back: stop, let what is out finish, commit, let go.
func (m *member) revoked(partitions map[string][]int32) {
	m.note("revoked", partitions)
	ended := m.those(partitions)
	for _, a := range ended {
		a.end() // it stays among those that are committed
	}
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
// nothing, and what it could commit would be refused. They are forgotten before
// they end, or a commit might call them drained.
func (m *member) lost(partitions map[string][]int32) {
	m.note("lost", partitions)
	lost := m.those(partitions)
	m.forget(lost)
	for _, a := range lost {
		a.end()
	}
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

// those returns the assignments of partitions.
func (m *member) those(partitions map[string][]int32) []*assignment {
	var those []*assignment
	for topic, ids := range partitions {
		for _, id := range ids {
			if a := m.assignment(partition{topic, id}); a != nil {
				those = append(those, a)
			}
		}
	}
	return those
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
