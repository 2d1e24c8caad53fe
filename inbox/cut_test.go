package inbox_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
)

// Case D7: the connection breaks, at any place whatever (pgx#1223). All that the
// engine sends is numbered, by the messages of the protocol, of which a
// statement has several. Each in turn is the one that the server does not get
// any more, then the last that it gets, and each answer is the one that we do
// not get. Nothing is lost, nothing doubled, an attempt is spent only if the
// handler's own statement was hit, a dead letter and its event are both there or
// neither is, and no connection leaks.
func TestCut(t *testing.T) {
	t.Parallel()

	process := func(t *testing.T, b *cutBundle, msg *handler.Message, want handler.Outcome) {
		outcome, err := b.in.Process(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
	typed := func(id, typ string) *handler.Message {
		return &handler.Message{ID: id, Type: typ, Key: []byte("k"), Payload: []byte(`{"id":1}`)}
	}
	routed := inbox.Config{DeadLetterRoute: route}
	replay := func(ctx context.Context, t *testing.T, b *cutBundle, id string) (handler.Outcome, error) {
		var letter int64
		require.NoError(t, b.Pool.QueryRow(ctx, `SELECT id FROM dead_letters WHERE message_text = $1`, id).Scan(&letter))
		return b.in.Replay(ctx, letter)
	}
	tests := []cutScenario{
		{name: "Handled", typ: succeeds, outcome: handler.Processed, left: left{effects: 1}},
		{
			name: "HandledCold", typ: succeeds, cold: true, outcome: handler.Processed, left: left{effects: 1},
		},
		{
			name: "HandledWithPrepare", typ: succeeds, outcome: handler.Processed, left: left{effects: 1},
			cfg: inbox.Config{Prepare: func(context.Context, *handler.Message) error { return nil }},
		},
		{
			name: "Duplicate", typ: succeeds, outcome: handler.Duplicate, left: left{effects: 1},
			prepare: func(t *testing.T, b *cutBundle, id string) {
				process(t, b, typed(id, succeeds), handler.Processed)
			},
		},
		{
			name: "Mismatch", typ: succeeds, outcome: handler.Mismatch, left: left{effects: 1, letters: 1, copies: 1},
			inDoubt: left{effects: 1, letters: 1, copies: 2},
			prepare: func(t *testing.T, b *cutBundle, id string) {
				process(t, b, &handler.Message{ID: id, Type: succeeds, Payload: []byte("another")}, handler.Processed)
			},
		},
		{name: "RetriedInPlace", typ: failsOnce, outcome: handler.Processed, attempts: 1, left: left{effects: 1}},
		{name: "Permanent", typ: isHopeless, outcome: handler.Dead, attempts: 1, left: left{letters: 1, copies: 1, attempts: 1}},
		{
			name: "Exhausted", typ: failsAlways, cfg: inbox.Config{QuickAttempts: 2},
			outcome: handler.Dead, attempts: 2, left: left{letters: 1, copies: 1, attempts: 2},
		},
		{
			name: "HandledColdWithRoute", typ: succeeds, cold: true, cfg: routed, outcome: handler.Processed, left: left{effects: 1},
		},
		{
			name: "PermanentWithRoute", typ: isHopeless, cfg: routed,
			outcome: handler.Dead, attempts: 1, left: left{letters: 1, copies: 1, attempts: 1, events: 1},
		},
		{
			name: "MismatchWithRoute", typ: succeeds, cfg: routed, outcome: handler.Mismatch,
			left: left{effects: 1, letters: 1, copies: 1, events: 1}, inDoubt: left{effects: 1, letters: 1, copies: 2, events: 1},
			prepare: func(t *testing.T, b *cutBundle, id string) {
				process(t, b, &handler.Message{ID: id, Type: succeeds, Payload: []byte("another")}, handler.Processed)
			},
		},
		{
			name: "ReplayInVainWithRoute", typ: isHopeless, cfg: routed, outcome: handler.Dead, attempts: 1, act: replay,
			left: left{letters: 1, copies: 1, attempts: 2, events: 2},
			prepare: func(t *testing.T, b *cutBundle, id string) {
				process(t, b, typed(id, isHopeless), handler.Dead)
			},
		},
		{
			name: "Replay", typ: untilMended, outcome: handler.Processed, left: left{effects: 1}, act: replay,
			prepare: func(t *testing.T, b *cutBundle, id string) {
				process(t, b, typed(id, untilMended), handler.Dead)
			},
		},
		{
			name: "ReplayInVain", typ: isHopeless, outcome: handler.Dead, attempts: 1, act: replay,
			left: left{letters: 1, copies: 1, attempts: 2},
			prepare: func(t *testing.T, b *cutBundle, id string) {
				process(t, b, typed(id, isHopeless), handler.Dead)
			},
		},
	}
	for _, tt := range tests {
		if tt.act == nil {
			tt.act = func(ctx context.Context, _ *testing.T, b *cutBundle, id string) (handler.Outcome, error) {
				return b.in.Process(ctx, typed(id, tt.typ))
			}
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setupCuts(t)
			if !tt.cold {
				b.open(t, "shipping", tt.cfg)
			}
			sent, answered := tt.count(t, b, faultproxy.FromClient), tt.count(t, b, faultproxy.FromServer)
			before := tt.sweep(t, b, faultproxy.FromClient, faultproxy.Before, sent)
			after := tt.sweep(t, b, faultproxy.FromClient, faultproxy.After, sent)
			unanswered := tt.sweep(t, b, faultproxy.FromServer, faultproxy.Before, answered)
			t.Logf("CUT scenario=%s statements=%d before=%d after=%d unanswered=%d lost=0 doubled=0",
				tt.name, len(sent), before, after, unanswered)
		})
	}
}
