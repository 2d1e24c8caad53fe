package transporttest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func memberRules() []rule {
	return []rule{
		{
			name:     "MembersShare",
			sentence: "Members of one group share the messages, and nothing is lost when one leaves.",
			unless:   "OneActive",
			check:    checkMembersShare,
		},
		{
			name:     "MemberDies",
			sentence: "When a member dies, what it had not settled comes to the others.",
			needs:    "Abort",
			unless:   "OneActive",
			check:    checkMemberDies,
		},
		{
			name:     "RevokedIsTold",
			sentence: "A delivery that its source lost is revoked, and its message comes again.",
			needs:    "Revoke",
			check:    checkRevokedIsTold,
		},
	}
}

func checkMembersShare(t *testing.T, b *bundle) {
	one, two := b.join(t, SinkConfig{Settle: true}), b.join(t, SinkConfig{Settle: true})
	published := b.publishUntilShared(t, one, two)
	awaitIDs(t, b, published, one.sink, two.sink)

	more := numbered(20)
	b.publish(t, more[:10]...)
	one.stop(t)
	b.publish(t, more[10:]...)
	awaitIDs(t, b, ids(more), one.sink, two.sink)
	two.stop(t)
}

func checkMemberDies(t *testing.T, b *bundle) {
	doomed, heir := b.join(t, SinkConfig{}), b.join(t, SinkConfig{Settle: true})
	b.publishUntilShared(t, doomed, heir)
	doomed.abort(t)

	awaitIDs(t, b, ids(doomed.sink.Arrived()), heir.sink)
	heir.stop(t)
}

func checkRevokedIsTold(t *testing.T, b *bundle) {
	b.publish(t, &handler.Message{ID: "evt_1"})
	m := b.join(t, SinkConfig{})
	require.NotNil(t, m.Revoke, "Features.Revoke is declared and the member has no Revoke")
	d := m.next(t)
	require.NotNil(t, d.Revoked)
	select {
	case <-d.Revoked:
		require.Fail(t, "a delivery that was not lost is revoked")
	default:
	}

	m.Revoke()
	select {
	case <-d.Revoked:
	case <-time.After(b.features.Deadline):
		require.Fail(t, "Revoked was not closed", "within %s", b.features.Deadline)
	}
	d.Returned(errOnceMore)

	other := b.join(t, SinkConfig{})
	require.Eventually(t, func() bool { return len(m.sink.Arrived())+len(other.sink.Arrived()) > 1 }, b.features.Deadline, tick,
		"the message did not come again")
}

// tick is how often a state that nobody announces is looked at.
const tick = 5 * time.Millisecond

// publishUntilShared publishes messages of ever new keys until both members
// were given some: a group takes its time to share. It returns their ids.
func (b *bundle) publishUntilShared(t *testing.T, one, two *member) []string {
	t.Helper()
	deadline := time.NewTimer(b.features.Deadline)
	defer deadline.Stop()
	again := time.NewTicker(tick)
	defer again.Stop()
	var published []string
	for len(one.sink.Arrived()) == 0 || len(two.sink.Arrived()) == 0 {
		id := fmt.Sprintf("shared_%d", len(published))
		b.publish(t, &handler.Message{ID: id, Key: []byte(id)})
		published = append(published, id)
		select {
		case <-again.C:
		case <-deadline.C:
			require.Fail(t, "one of two members was given nothing", "within %s, of %d messages", b.features.Deadline, len(published))
		}
	}
	return published
}

// awaitIDs waits until all of want have arrived at some of the sinks.
func awaitIDs(t *testing.T, b *bundle, want []string, sinks ...*Sink) {
	t.Helper()
	var missing []string
	arrived := func() bool {
		here := map[string]bool{}
		for _, s := range sinks {
			for _, msg := range s.Arrived() {
				here[msg.ID] = true
			}
		}
		missing = missing[:0]
		for _, id := range want {
			if !here[id] {
				missing = append(missing, id)
			}
		}
		return len(missing) == 0
	}
	deadline := time.NewTimer(b.features.Deadline)
	defer deadline.Stop()
	look := time.NewTicker(tick)
	defer look.Stop()
	for !arrived() {
		select {
		case <-look.C:
		case <-deadline.C:
			require.Fail(t, "messages did not arrive", "%d of %d within %s, the first is %.255q", len(missing), len(want), b.features.Deadline, missing[0])
		}
	}
}
