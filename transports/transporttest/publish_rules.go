package transporttest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func publishRules() []rule {
	return []rule{
		{
			name:     "EveryMessageArrives",
			sentence: "Every message that the broker confirmed is delivered.",
			check:    checkEveryMessageArrives,
		},
		{
			name:     "PublishIsConcurrent",
			sentence: "Publish is safe for concurrent use.",
			check:    checkPublishIsConcurrent,
		},
		{
			name:     "PublishAnswersForEach",
			sentence: "Publish returns one result for each message, in the same order, nil only for those the broker keeps.",
			check:    checkPublishAnswersForEach,
		},
		{
			name:     "BadIDs",
			sentence: "An id that no consumer would accept is refused for good, or arrives as it was sent; what follows it arrives.",
			check:    checkBadIDs,
		},
	}
}

func checkEveryMessageArrives(t *testing.T, b *bundle) {
	const n = 200
	msgs := make([]*handler.Message, n)
	for i := range msgs {
		msgs[i] = &handler.Message{ID: fmt.Sprintf("evt_%d", i), Key: fmt.Appendf(nil, "key_%d", i%10)}
	}
	b.publish(t, msgs[:n/2]...)
	m := b.join(t, SinkConfig{Settle: true})
	b.publish(t, msgs[n/2:]...)

	awaitIDs(t, b, ids(msgs), m.sink)
	m.stop(t)
}

func checkPublishIsConcurrent(t *testing.T, b *bundle) {
	const publishers, each = 8, 25
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards the two below
		want []string
		errs []error
	)
	for p := range publishers {
		wg.Go(func() {
			for i := range each {
				msg := &handler.Message{ID: fmt.Sprintf("evt_%d_%d", p, i), Key: fmt.Appendf(nil, "key_%d", p)}
				results := b.Publisher.Publish(t.Context(), []*handler.Message{msg})
				mu.Lock()
				want = append(want, msg.ID)
				errs = append(errs, results...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()

	require.Len(t, errs, publishers*each)
	for _, err := range errs {
		require.NoError(t, err)
	}
	m := b.join(t, SinkConfig{Settle: true})
	awaitIDs(t, b, want, m.sink)
	m.stop(t)
}

func checkPublishAnswersForEach(t *testing.T, b *bundle) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	msgs := []*handler.Message{{ID: "late_1"}, {ID: "late_2"}}

	require.Empty(t, b.Publisher.Publish(t.Context(), nil), "no message, no result")
	late := b.Publisher.Publish(ended, msgs)

	require.Len(t, late, len(msgs))
	var confirmed []string
	for i, err := range late {
		if err == nil { // it may have been fast enough: then the message must be there
			confirmed = append(confirmed, msgs[i].ID)
			continue
		}
		require.False(t, handler.IsPermanent(err), "a context that ended is no property of the message: %v", err)
	}
	b.publish(t, &handler.Message{ID: "evt_1"})
	m := b.join(t, SinkConfig{Settle: true})
	awaitIDs(t, b, append(confirmed, "evt_1"), m.sink)
	m.stop(t)
}

func checkBadIDs(t *testing.T, b *bundle) {
	msgs := []*handler.Message{
		{Payload: []byte("no id")},
		{ID: " \t\n"},
		{ID: "nul\x00byte"},
		{ID: "\xff\xfe"},
		{ID: strings.Repeat("x", 10_000)},
	}
	results := b.Publisher.Publish(t.Context(), msgs)
	require.Len(t, results, len(msgs))
	var want []string
	for i, err := range results {
		if err == nil {
			want = append(want, msgs[i].ID)
			continue
		}
		require.True(t, handler.IsPermanent(err), "message %.20q can never be sent, yet it is not refused for good: %v", msgs[i].ID, err)
		require.Less(t, len(err.Error()), 2_000, "the error shows the whole id")
	}
	b.publish(t, &handler.Message{ID: "evt_last"})

	m := b.join(t, SinkConfig{Settle: true})
	awaitIDs(t, b, append(want, "evt_last"), m.sink)
	m.stop(t)
	for _, msg := range m.sink.Arrived() {
		require.Equal(t, msg.ID == "", bytes.Equal(msg.Payload, []byte("no id")), "an id was made up: %.20q", msg.ID)
	}
}

func ids(msgs []*handler.Message) []string {
	all := make([]string, len(msgs))
	for i, msg := range msgs {
		all[i] = msg.ID
	}
	return all
}
