package systemtest_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/kafka"
)

// churnVariable is how long members come and go: some minutes in a long run,
// in which each stays for five seconds.
const churnVariable = "SEMEL_TEST_CHURN"

// churn says how many guests there are at least, for how long they come, and
// how long each stays.
type churn struct {
	guests    int
	lasts     time.Duration
	guestTime time.Duration
}

func churnTime(t *testing.T) churn {
	t.Helper()
	text := os.Getenv(churnVariable)
	if text == "" {
		return churn{guests: 5, guestTime: time.Second}
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, churnVariable)
	require.GreaterOrEqual(t, d, 20*time.Second, "%s: members that stay for five seconds need some time to come and go", churnVariable)
	return churn{guests: 2, lasts: d, guestTime: 5 * time.Second}
}

// Case K3: a member joined and left every few seconds under load, with retries
// pending. Records were lost or handled twice, and a partition that was paused
// when it moved was never fetched again (spring-kafka#2525, #2576;
// connect#4009).
func TestChurn_MembersComeAndGo(t *testing.T) {
	t.Parallel()

	eachProtocol(t, func(t *testing.T, p protocol) {
		const partitions = 6
		churn := churnTime(t)
		b, tp := p.setup(t, partitions)
		b.exec(t, `ALTER TABLE effects ADD member int NOT NULL`)
		var h stubbornHandler
		members := 0
		join := func() (*running, *kafka.Source) {
			members++
			// A small window, so that fetches are paused and resumed all the time.
			source := p.source(tp, kafka.SourceConfig{Logger: b.log.logger(), WindowRecords: 10 * partitions})
			in := b.inbox(t, b.Pool, h.of(members), inbox.Config{
				QuickAttempts: 1_000_000, QuickDelay: 20 * time.Millisecond, QuickMaxDelay: 200 * time.Millisecond,
			})
			return b.run(t, in, source), source
		}
		host, hostSource := join()
		hostHasAll := func() bool { return hostSource.Stats().Partitions == partitions }
		await(t, "the first member to have all partitions", hostHasAll)
		p.requireUsed(t, tp)
		load := startLoad(t, tp, func(from int) []*handler.Message { return keyedMessages(from, 10) })
		var stubborn []*handler.Message

		began := time.Now()
		for guests := 0; guests < churn.guests || time.Since(began) < churn.lasts; guests++ {
			round := stubbornMessages(guests + 1)
			send(t, tp, round...)
			stubborn = append(stubborn, round...)
			await(t, "a retry pending for each of them", func() bool { return h.failing(round) })

			returned := host.passed().returned
			guest, source := join()
			await(t, "the newcomer to have its share", func() bool { return source.Stats().Partitions == partitions/2 })
			require.Greater(t, host.passed().returned, returned, "retries were pending in what moved")
			h.giveIn.Add(1)
			leaves := time.Now().Add(churn.guestTime)
			await(t, "the newcomer to have worked", func() bool { return time.Now().After(leaves) && guest.passed().settled > 20 })
			guest.finish(t)
			await(t, "the first member to have all partitions again", hostHasAll)
			require.NotZero(t, guest.in.Stats().FailedAttempts)
		}
		sent := append(load.stop(t), ids(stubborn)...)

		// While it runs: a commit at its end would hide a partition that stands still.
		await(t, "the committed offsets to be the ends", func() bool { return tp.left(t) == 0 })
		await(t, "no partition to be held", func() bool { return hostSource.Stats().Held == 0 })
		host.finish(t)
		b.requireOneEffectEach(t, sent)
		b.requireOrderInEachMember(t)
		require.Empty(t, b.letters(t))
	})
}

// stubbornHandler fails now and then, and stubborn messages until it gives in
// to their round.
type stubbornHandler struct {
	calls  atomic.Int64
	giveIn atomic.Int64 // the last round that succeeds
	failed sync.Map     // ids of stubborn messages that were refused
}

// of is the handler of one member.
func (h *stubbornHandler) of(member int) handler.Func {
	return func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		_, err := tx.Exec(ctx, `INSERT INTO effects (name, key, version, member) VALUES ($1, $2, $3, $4)`, msg.ID, string(msg.Key), msg.Version, member)
		switch {
		case err != nil:
			return err
		case msg.Version < 0 && -msg.Version > h.giveIn.Load():
			h.failed.Store(msg.ID, true)
			return errNowAndThen
		case h.calls.Add(1)%7 == 0:
			return errNowAndThen
		}
		return nil
	}
}

// failing reports whether all of msgs were refused.
func (h *stubbornHandler) failing(msgs []*handler.Message) bool {
	for _, msg := range msgs {
		if _, failed := h.failed.Load(msg.ID); !failed {
			return false
		}
	}
	return true
}

// churnKeys is enough for some in each partition.
const churnKeys = 48

// keyedMessages returns n messages, the first one with number from. The
// version tells their order within their key.
func keyedMessages(from, n int) []*handler.Message {
	msgs := messages(from, n)
	for i, msg := range msgs {
		msg.Key, msg.Version = fmt.Append(nil, "key ", (from+i)%churnKeys), int64(from+i)
	}
	return msgs
}

// stubbornMessages returns messages of a round for half of the keys. They are
// sent beside the others, so they have no place in the order.
func stubbornMessages(round int) []*handler.Message {
	msgs := messages(0, churnKeys/2)
	for i, msg := range msgs {
		msg.ID = fmt.Sprintf("stubborn %d of round %d", i, round)
		msg.Key, msg.Version = fmt.Append(nil, "key ", i), -int64(round)
	}
	return msgs
}

// requireOrderInEachMember requires what is promised when partitions move: the
// messages of a key that one member handled took effect in their order.
func (b *testBundle) requireOrderInEachMember(t *testing.T) {
	t.Helper()
	var disorder int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM (
		SELECT version, lag(version) OVER (PARTITION BY member, key ORDER BY seq) AS before FROM effects WHERE version >= 0
	) AS pairs WHERE before >= version`).Scan(&disorder))
	require.Zero(t, disorder, "PROMISE BROKEN: messages of a key that took effect before an earlier one")
}
