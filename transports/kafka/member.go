package kafka

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
)

// How long a Run that ends tries to commit and to leave the group, each. A
// broker that is away must not keep the process from ending.
const farewell = 5 * time.Second

// member is one Run of a source: its client, and what the group assigned to it.
type member struct {
	source *Source
	sink   handler.Sink
	client *kgo.Client
	report *report
	window amount                  // the most that may be fetched and not committed, see share
	fail   context.CancelCauseFunc // ends the Run with an error

	drain        time.Duration // how long the deliveries of a revoked partition may take
	revokeCommit time.Duration // and then its commit

	out     sync.WaitGroup // deliveries neither settled nor returned
	workers sync.WaitGroup
	commits *committer
	polls   turnstile

	shares atomic.Int64 // how many assignments there are; written with mu held

	mu          sync.Mutex // guards the fields below
	assignments map[partition]*assignment
	ending      bool // no worker is started any more
}

// newMember checks the options and makes a member that is not in the group yet.
func newMember(ctx context.Context, s *Source, sink handler.Sink, fail context.CancelCauseFunc) (*member, error) {
	m := &member{source: s, sink: sink, assignments: map[partition]*assignment{}}
	m.fail = func(err error) {
		s.health.failed(err) // at once: the deliveries that are out may take their time
		fail(err)
	}
	client, err := newClient(ctx, m, s.opts)
	if err != nil {
		return nil, err
	}
	rebalanceTimeout := client.OptValue(kgo.RebalanceTimeout).(time.Duration)
	config, err := s.config.withDefaults(rebalanceTimeout)
	if err != nil {
		client.Close()
		return nil, err
	}
	m.client = client
	m.report = newReport(config.Logger, config.Group, &s.health)
	m.window = amount{config.WindowRecords, config.WindowBytes}
	m.drain = config.DrainTimeout
	m.revokeCommit = (rebalanceTimeout - m.drain) / 2
	m.commits = newCommitter(m)
	return m, nil
}

// run joins the group and consumes until ctx ends.
func (m *member) run(ctx context.Context) {
	var helpers sync.WaitGroup
	watching, stopWatching := context.WithCancel(ctx)
	committing, stopCommitting := context.WithCancel(context.WithoutCancel(ctx))
	helpers.Go(func() { m.watch(watching) })
	helpers.Go(func() { m.commits.run(committing) })
	defer helpers.Wait()
	defer stopCommitting()
	defer stopWatching()

	m.client.AddConsumeTopics(m.source.config.Topics...) // joins the group, in the background
	m.poll(ctx)

	m.mu.Lock()
	m.ending = true
	m.mu.Unlock()
	m.workers.Wait()
	m.out.Wait()
	for _, a := range m.all() {
		a.end() // so that the last commit says: drained
	}
	m.leave(ctx, stopCommitting)
}

// leave commits and leaves the group. Whoever has the partitions next starts
// where we stopped.
func (m *member) leave(ctx context.Context, stopCommitting func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	m.commits.flush(ctx)
	stopCommitting() // what is revoked by leaving waits for no further commit

	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := m.client.LeaveGroupContext(ctx); err != nil {
		m.report.warn("could not leave the consumer group; it will notice by the session timeout", err)
	}
	m.client.Close()
}

// share is the part of the window that each partition has. A full one is let
// go on by its next commit, also if the shares have changed meanwhile.
func (m *member) share() amount {
	n := max(m.shares.Load(), 1)
	return amount{max(m.window.records/int(n), 1), max(m.window.bytes/n, 1)}
}

// all returns the assignments as they are now.
func (m *member) all() []*assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*assignment, 0, len(m.assignments))
	for _, a := range m.assignments {
		all = append(all, a)
	}
	return all
}

func (m *member) wakeAll() {
	for _, a := range m.all() {
		a.signal()
	}
}
