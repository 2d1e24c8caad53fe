package kafka

import (
	"context"
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pollRecords bounds one poll, and with it how far a window overshoots.
const pollRecords = 1000

// poll hands what the client fetched to the assignments until ctx ends. It
// waits for nothing but the client: a sink that blocks does not reach it.
func (m *member) poll(ctx context.Context) {
	defer m.polls.close()
	for ctx.Err() == nil {
		polling, end := m.polls.begin(ctx)
		fetches := m.client.PollRecords(polling, pollRecords)
		for i := range fetches {
			for j := range fetches[i].Topics {
				topic := &fetches[i].Topics[j]
				for k := range topic.Partitions {
					m.fetched(ctx, topic, &topic.Partitions[k])
				}
			}
		}
		end()
	}
}

func (m *member) fetched(ctx context.Context, topic *kgo.FetchTopic, f *kgo.FetchPartition) {
	p := partition{topic.Topic, f.Partition}
	if f.Err != nil {
		m.fetchFailed(p, f.Err)
	}
	if len(f.Records) == 0 {
		return
	}
	a := m.assignment(p)
	if a == nil {
		return // lost meanwhile: whoever has the partition now fetches it
	}
	expected, lost, ok := a.add(f, topic.TopicID)
	if !ok {
		m.source.health.rewound()
		m.report.partition(p, "the log was rewound: it ended before what was consumed or committed; reading it again from where it begins now",
			slog.Int64("expected_offset", expected), slog.Int64("first_offset", f.Records[0].Offset))
		// What is there now are other records: the old assignment must commit
		// nothing any more.
		if a = m.replace(ctx, a); a == nil {
			return
		}
		_, lost, _ = a.add(f, topic.TopicID)
	}
	if lost > 0 {
		m.source.health.lost(lost)
		m.report.partition(p, "records were deleted by the topic's retention before they were consumed; going on with the oldest one left",
			slog.Int64("expected_offset", expected), slog.Int64("log_start_offset", f.LogStartOffset), slog.Int64("records_lost", lost))
	}
}

// turnstile lets a rebalance wait until whatever a poll has returned is handed
// over. Without it, records polled before a partition was revoked could be
// taken for those of its next assignment.
type turnstile struct {
	mu        sync.Mutex // guards the fields below
	turn      chan struct{}
	interrupt context.CancelFunc
	closed    bool
}

// begin starts a turn: a poll under the returned context, then the hand-over,
// then end.
func (t *turnstile) begin(ctx context.Context) (polling context.Context, end func()) {
	polling, cancel := context.WithCancel(ctx)
	turn := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn, t.interrupt = turn, cancel
	return polling, func() { cancel(); close(turn) }
}

// wait interrupts the poll and waits for the end of its turn.
func (t *turnstile) wait() {
	t.mu.Lock()
	turn, interrupt, closed := t.turn, t.interrupt, t.closed
	t.mu.Unlock()
	if turn == nil || closed {
		return
	}
	interrupt()
	<-turn
}

// close ends the last turn.
func (t *turnstile) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}
