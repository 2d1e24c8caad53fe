package transporttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// errTestOver is what is still out at the end of a subtest is returned with.
var errTestOver = errors.New("the test is over")

// member is a source of the group while it runs.
type member struct {
	Member
	sink     *Sink
	deadline time.Duration
	cancel   context.CancelFunc
	ended    chan struct{} // closed when Run has returned; err is set then
	err      error
}

// join starts a new member of the group that delivers to a sink of config.
func (b *bundle) join(t *testing.T, config SinkConfig) *member {
	t.Helper()
	return b.run(t, b.NewMember(t), config)
}

// run starts m. Whatever becomes of the subtest, m has ended after it.
func (b *bundle) run(t *testing.T, m Member, config SinkConfig) *member {
	t.Helper()
	config.Deadline = b.features.Deadline
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // the test decides when it ends
	running := &member{Member: m, sink: NewSink(config), deadline: b.features.Deadline, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(running.ended)
		running.err = m.Source.Run(ctx, running.sink)
		running.sink.RunReturned()
	}()
	t.Cleanup(func() {
		running.sink.Refuse(errTestOver)
		cancel()
		running.sink.ReturnAll(errTestOver)
		if !running.hasEnded(running.deadline) {
			t.Errorf("Run did not return within %s after the end of its context", running.deadline)
		}
		running.sink.RequireNoFault(t)
	})
	return running
}

// next takes the next delivery.
func (m *member) next(t *testing.T) *handler.Delivery {
	t.Helper()
	return m.sink.next(t, m.ended)
}

// collect takes n deliveries and settles them.
func (m *member) collect(t *testing.T, n int) []*handler.Message {
	t.Helper()
	msgs := make([]*handler.Message, 0, n)
	for range n {
		d := m.next(t)
		msgs = append(msgs, d.Message)
		d.Settled()
	}
	return msgs
}

// stop ends the member's context and requires that Run ends well.
func (m *member) stop(t *testing.T) {
	t.Helper()
	m.cancel()
	require.True(t, m.hasEnded(m.deadline), "Run did not return within %s after the end of its context", m.deadline)
	require.NoError(t, m.err, "Run returned an error although its context ended and all was done")
}

// abort kills the member.
func (m *member) abort(t *testing.T) {
	t.Helper()
	require.NotNil(t, m.Abort, "Features.Abort is declared and the member has no Abort")
	m.Abort()
	m.sink.Refuse(errTestOver) // nobody is there any more
}

// hasEnded reports whether Run returns within patience.
func (m *member) hasEnded(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-m.ended:
		return true
	case <-timer.C:
		return false
	}
}
