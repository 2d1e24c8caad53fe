package transporttest

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// Transport is one topic or queue, new and empty, with one group of consumers.
// It must take messages of a megabyte, and share them between two members
// (Kafka: several partitions). What was published before the first member
// joined is the group's too.
type Transport struct {
	// Publisher publishes to the topic.
	Publisher handler.Publisher

	// NewMember returns a member of the group, one that was never run.
	NewMember func(t testing.TB) Member
}

// Member is one source of the group and the means to hurt it.
type Member struct {
	Source handler.Source

	// Abort ends Run as the death of its process would: nothing more is
	// acknowledged. Run's error does not matter then. Needed by
	// [Features.Abort].
	Abort func()

	// Revoke makes the broker take all deliveries away from the member, for
	// example by closing its connection. Run may go on or end. Needed by
	// [Features.Revoke].
	Revoke func()
}

// Features says what a transport can do. The zero value is one that delivers
// messages, in any order, and cannot do anything else.
type Features struct {
	// Ordered: messages of one key arrive at one member as they were published.
	Ordered bool

	// KeepsOrder: the source is a [handler.OrderedSource] whose KeepsOrder
	// returns nil.
	KeepsOrder bool

	// OneActive: one member at a time is given messages, and the others wait for
	// it to go. Else they share.
	OneActive bool

	// HeaderOrder: headers arrive in the order they were sent.
	HeaderOrder bool

	// RepeatedHeaders: several headers of one name arrive.
	RepeatedHeaders bool

	// NilHeaders: a header without a value differs from an empty one.
	NilHeaders bool

	// BinaryHeaders: a header's value may be any bytes.
	BinaryHeaders bool

	// Tombstones: a nil payload differs from an empty one.
	Tombstones bool

	// Positions: Origin.Position is set.
	Positions bool

	// BrokerTime: Origin.Time is set.
	BrokerTime bool

	// Redelivered: Origin.Redelivered is set on what comes again.
	Redelivered bool

	// Pause: the source is a [handler.Pauser].
	Pause bool

	// Abort: members have the function of that name.
	Abort bool

	// Revoke: members have the function of that name, and deliveries a Revoked
	// channel.
	Revoke bool

	// Deadline bounds every wait for something that must happen. Defaults to a
	// minute: a Kafka group waits for its dead before it goes on.
	Deadline time.Duration
}

const (
	defaultDeadline = time.Minute

	// quiet is how long we watch for something that must not happen. Too short
	// a watch can only miss a fault; it never invents one.
	quiet = 300 * time.Millisecond
)

// rule is one sentence of the contract and the proof of it.
type rule struct {
	name     string
	sentence string
	needs    string // the fields of Features without which it is skipped; may be empty
	unless   string // the field of Features with which it is skipped; may be empty
	check    func(t *testing.T, b *bundle)
}

// bundle is what one subtest works with.
type bundle struct {
	Transport
	features Features
}

// Run checks a transport against the contract. Subtests run in parallel, each
// on a transport of its own.
func Run(t *testing.T, newTransport func(t *testing.T) Transport, features Features) {
	t.Helper()
	if features.Deadline == 0 {
		features.Deadline = defaultDeadline
	}
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("broken sentence of the contract: %s", r.sentence)
				}
			})
			for _, field := range strings.Fields(r.needs) {
				if !features.declare(field) {
					t.Skipf("the transport does not declare Features.%s: %s", field, r.sentence)
				}
			}
			if r.unless != "" && features.declare(r.unless) {
				t.Skipf("the transport declares Features.%s: %s", r.unless, r.sentence)
			}
			r.check(t, &bundle{Transport: newTransport(t), features: features})
		})
	}
}

func (f Features) declare(field string) bool { return reflect.ValueOf(f).FieldByName(field).Bool() }

func rules() []rule {
	var all []rule
	for _, some := range [][]rule{publishRules(), messageRules(), originRules(), settleRules(), orderRules(), stopRules(), pauseRules(), memberRules()} {
		all = append(all, some...)
	}
	return all
}

// publish publishes msgs and requires that the broker confirms each.
func (b *bundle) publish(t *testing.T, msgs ...*handler.Message) {
	t.Helper()
	results := b.Publisher.Publish(t.Context(), msgs)
	require.Len(t, results, len(msgs), "Publish returns one result for each message")
	for i, err := range results {
		require.NoError(t, err, "publish message %q", msgs[i].ID)
	}
}
