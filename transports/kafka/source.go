package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
)

var (
	_ handler.Source = (*Source)(nil)
	_ handler.Pauser = (*Source)(nil)
)

// errRunsAlready is returned by [Source.Run] when another Run has not ended.
var errRunsAlready = errors.New("it runs already: make one source for each Run")

// Source takes messages from Kafka topics as one member of a consumer group.
// Make one with [NewSource]. It is safe for concurrent use.
type Source struct {
	config SourceConfig
	opts   []kgo.Opt
	paused atomic.Bool
	health health
	doubt  time.Duration // see committer

	mu     sync.Mutex // guards member
	member *member    // of the Run that is going on, or nil
}

// NewSource returns a source. It does no I/O: what is wrong with config or
// opts is returned by [Source.Run].
//
// The client is the source's own and is built from opts: seed brokers, TLS,
// SASL, timeouts, balancers, a static member id. They may change the source's
// defaults: the cooperative-sticky balancer, records of committed transactions
// only, starting a new group at the oldest record, fetches of at most 16 MB,
// and 10 seconds for a connection. The source itself sets the group and the
// topics, commits offsets, and listens to rebalances; options for these are
// replaced. Options that cannot work with it (committing automatically,
// BlockRebalanceOnPoll, ConsumeRegex, resetting to the end) are refused.
func NewSource(config SourceConfig, opts ...kgo.Opt) *Source {
	config.Topics = slices.Clone(config.Topics)
	return &Source{config: config, opts: slices.Clone(opts), doubt: doubtTime}
}

// Run joins the group and delivers messages to sink until ctx ends. Then it
// takes no more, waits until all that it handed out are settled or returned,
// commits, leaves the group, and returns nil. It may be called again after
// that, but not twice at once.
//
// It waits for a broker that is away and for a topic that does not exist yet,
// and says so in the log. It returns an error when waiting does not help; see
// the package comment.
func (s *Source) Run(ctx context.Context, sink handler.Sink) error {
	if err := s.config.validate(); err != nil {
		return fmt.Errorf("consume from Kafka: %w", err)
	}
	err := s.run(ctx, sink)
	if err != nil {
		return fmt.Errorf("consume topics %q as group %q: %w", s.config.Topics, s.config.Group, err)
	}
	return nil
}

func (s *Source) run(ctx context.Context, sink handler.Sink) error {
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	m, err := s.start(run, stop, sink)
	if err != nil {
		return err
	}
	defer s.stop()
	m.run(run)
	if cause := context.Cause(run); cause != context.Cause(ctx) { //nolint:errorlint // ours, or the caller's: the same value or not
		return cause
	}
	return nil
}

// Pause stops fetching and delivering until Resume. The source keeps its
// partitions. A message that a blocked sink was about to take may still be
// delivered.
func (s *Source) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused.Store(true)
	if s.member != nil {
		s.member.client.PauseFetchTopics(s.config.Topics...)
	}
}

// Resume ends a [Source.Pause]. A partition whose window is full goes on
// waiting for that.
func (s *Source) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused.Store(false)
	if s.member != nil {
		s.member.client.ResumeFetchTopics(s.config.Topics...)
		s.member.wakeAll()
	}
}

func (s *Source) start(ctx context.Context, stop context.CancelCauseFunc, sink handler.Sink) (*member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.member != nil {
		return nil, errRunsAlready
	}
	m, err := newMember(ctx, s, sink, stop)
	if err != nil {
		return nil, err
	}
	if s.paused.Load() {
		m.client.PauseFetchTopics(s.config.Topics...)
	}
	s.member = m
	return m, nil
}

func (s *Source) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.member = nil
}
