package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/internal/jitter"
)

const (
	commitInterval = 500 * time.Millisecond
	// commitTimeout is long on purpose: a commit that was given up may still
	// arrive, after a later one.
	commitTimeout = time.Minute
	// doubtTime is how long after a commit without an answer it may still
	// arrive and set the offset back. All offsets are committed once more then.
	doubtTime = 30 * time.Second
)

// committer commits what is settled: now and then, and on demand. There is one
// goroutine for it, so commits never overtake each other.
type committer struct {
	member   *member
	doubt    time.Duration // doubtTime, but for tests
	soon     chan struct{} // much waits to be committed
	flushes  chan flush
	done     chan struct{} // closed when run has returned
	recommit time.Time     // when all offsets must be committed again; zero: no doubt
}

// flush asks for everything to be committed.
type flush struct {
	ctx  context.Context //nolint:containedctx // a request on its way to the committer's goroutine
	done chan struct{}
}

func newCommitter(m *member) *committer {
	return &committer{
		member:  m,
		doubt:   m.source.doubt,
		soon:    make(chan struct{}, 1), // one pending signal is enough
		flushes: make(chan flush),
		done:    make(chan struct{}),
	}
}

// run commits until ctx ends. What is uncommitted then stays so.
func (c *committer) run(ctx context.Context) {
	defer close(c.done)
	ticker := time.NewTicker(commitInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.commit(ctx)
		case <-c.soon:
			c.commit(ctx)
		case f := <-c.flushes:
			c.commitAll(ctx, f.ctx)
			close(f.done)
		}
	}
}

// flush commits everything that is settled, and waits for it until ctx ends.
func (c *committer) flush(ctx context.Context) {
	f := flush{ctx, make(chan struct{})}
	select {
	case c.flushes <- f:
	case <-c.done:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-f.done:
	case <-c.done:
	case <-ctx.Done():
	}
}

// hurry asks for a commit before the interval is over.
func (c *committer) hurry() {
	select {
	case c.soon <- struct{}{}:
	default:
	}
}

// commitAll tries until nothing is uncommitted, or until either context ends.
func (c *committer) commitAll(ctx, until context.Context) {
	pause := jitter.New(100*time.Millisecond, time.Second)
	for !c.commit(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-until.Done():
			return
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// commit commits what changed since the last time. What the broker refuses (a
// rebalance goes on, a coordinator moves) is kept for the next time. It
// reports whether nothing was refused.
func (c *committer) commit(ctx context.Context) (ok bool) {
	all := !c.recommit.IsZero() && time.Now().After(c.recommit)
	marks := map[partition]mark{}
	assignments := map[partition]*assignment{}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for _, a := range c.member.all() {
		m, changed := a.position(all)
		if !changed {
			continue
		}
		p := a.partition
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.topic][p.id] = m.offset
		marks[p], assignments[p] = m, a
	}
	if all {
		c.recommit = time.Time{}
	}
	if len(offsets) == 0 {
		return true
	}

	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		nameOwners(req, marks)
		return nil
	})
	var refused error
	c.member.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			c.recommit = time.Now().Add(c.doubt)
			refused = err
			return
		}
		refused = eachCommitted(req, resp, func(p partition) {
			if a := assignments[p]; a != nil {
				a.committed(marks[p])
			}
		})
	})
	if refused != nil {
		c.member.source.health.commitFailed()
		c.member.report.warn("offsets could not be committed; trying again", refused)
	}
	return refused == nil
}

// nameOwners makes the metadata of a commit.
func nameOwners(req *kmsg.OffsetCommitRequest, marks map[partition]mark) {
	for i := range req.Topics {
		topic := &req.Topics[i]
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			owner := marks[partition{topic.Topic, p.Partition}].owner
			p.Metadata = &owner
		}
	}
}

// eachCommitted calls done for each partition the broker has committed, and
// returns what it says about the others. An answer names topics either by name
// or by id.
func eachCommitted(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, done func(partition)) error {
	names := make(map[[16]byte]string, len(req.Topics))
	for i := range req.Topics {
		names[req.Topics[i].TopicID] = req.Topics[i].Topic
	}
	var errs []error
	for i := range resp.Topics {
		topic := resp.Topics[i].Topic
		if topic == "" {
			topic = names[resp.Topics[i].TopicID]
		}
		for _, p := range resp.Topics[i].Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				errs = append(errs, fmt.Errorf("commit %s/%d: %w", topic, p.Partition, err))
				continue
			}
			done(partition{topic, p.Partition})
		}
	}
	return errors.Join(errs...)
}
