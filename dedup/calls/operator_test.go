package calls_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/codectest"
)

func (b *testBundle) store() calls.Store { return calls.NewStore(b.Schema) }

func (b *testBundle) ref() calls.Ref {
	return calls.Ref{ConsumerID: dedup.ConsumerID(consumer), MessageID: dedup.MessageID(b.msg.ID), Step: step}
}

// resolve decides on the call of the message.
func (b *testBundle) resolve(t *testing.T, r calls.Resolution) []calls.Ref {
	t.Helper()
	changed, err := b.store().Resolve(t.Context(), b.Pool, r, b.ref())
	require.NoError(t, err)
	return changed
}

// unknown makes a call that is in front of a person.
func (b *testBundle) unknown(t *testing.T) {
	t.Helper()
	b.lost(t, calls.Options{KeyTTL: -1})
	b.age(t, callTime)
	_, err := b.do(t, calls.Options{KeyTTL: -1})
	require.ErrorIs(t, err, handler.ErrCallUnknown)
}

func TestResolve(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		r        calls.Resolution
		after    row
		want     string
		requests int
		sameKey  bool
		end      row
	}{
		{
			name: "DoneWithResult", r: calls.Resolution{Decision: calls.WasDone, Result: []byte("invoice 7"), By: "ann"},
			after: row{State: "done", Generation: 1, Attempts: 1, Sent: true}, want: "invoice 7", requests: 1,
		},
		{
			name: "Done", r: calls.Resolution{Decision: calls.WasDone, By: "ann"},
			after: row{State: "done", Generation: 1, Attempts: 1, Sent: true}, requests: 1,
		},
		{
			name: "NotDone", r: calls.Resolution{Decision: calls.NotDone, By: "ann"},
			after: row{State: "failed", Generation: 1, Attempts: 1, Sent: true}, want: "invoice 1", requests: 2,
			end: row{State: "done", Generation: 2, Attempts: 2, Sent: true},
		},
		{
			name: "Retry", r: calls.Resolution{Decision: calls.Retry, By: "ann"},
			after: row{State: "ready", Generation: 1, Attempts: 1, Sent: true}, want: "invoice 1", requests: 2, sameKey: true,
			end: row{State: "done", Generation: 1, Attempts: 2, Sent: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.unknown(t)

			require.Equal(t, []calls.Ref{b.ref()}, b.resolve(t, tt.r))
			require.Equal(t, tt.after, b.row(t))
			require.Empty(t, b.resolve(t, tt.r), "a second person comes too late")
			r, err := b.store().Load(t.Context(), b.Pool, b.ref())
			require.NoError(t, err)
			require.Equal(t, "ann", r.ResolvedBy)

			result, err := b.do(t, calls.Options{KeyTTL: -1}) // the replay
			require.NoError(t, err)
			require.Equal(t, tt.want, string(result))
			require.Equal(t, tt.want == "", result == nil)
			keys := b.provider.requests()
			require.Len(t, keys, tt.requests)
			require.Equal(t, tt.requests == 1 || tt.sameKey, keys[0] == keys[len(keys)-1])
			if tt.end != (row{}) {
				require.Equal(t, tt.end, b.row(t))
			}
		})
	}
}

// A person's yes to one more call under the same key is for one: if nobody knows its
// end either, the person is asked again.
func TestResolve_RetryIsForOneCall(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.unknown(t)
	require.Len(t, b.resolve(t, calls.Resolution{Decision: calls.Retry}), 1)
	none := calls.Options{KeyTTL: -1}

	b.provider.fails = []error{unsent{errReset}} // not made: the yes stands
	_, err := b.do(t, none)
	require.ErrorIs(t, err, unsent{errReset})
	b.lost(t, none)
	b.age(t, callTime)
	_, err = b.do(t, none)

	require.ErrorIs(t, err, handler.ErrCallUnknown)
	require.Len(t, b.provider.requests(), 3)
}

func TestResolve_TwoPersons(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.unknown(t)
	var deciding sync.WaitGroup
	changed := make([]int, 8)
	for i := range changed {
		deciding.Go(func() {
			d := []calls.Decision{calls.WasDone, calls.NotDone, calls.Retry}[i%3]
			refs, err := b.store().Resolve(context.Background(), b.Pool, calls.Resolution{Decision: d}, b.ref())
			if err != nil {
				t.Error(err)
			}
			changed[i] = len(refs)
		})
	}
	deciding.Wait()
	sum := 0
	for _, n := range changed {
		sum += n
	}
	require.Equal(t, 1, sum)
}

// What a person may decide on: not what is under way, nor what is known.
func TestResolve_Which(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		make func(b *testBundle) error // one call, and what it says
		age  time.Duration
		want bool
	}{
		{name: "UnderWay", make: func(*testBundle) error { return errReset }, age: callTime - time.Second},
		{name: "Started", make: func(*testBundle) error { return errReset }, age: callTime, want: true},
		{name: "Done", make: func(*testBundle) error { return nil }, age: hour},
		{name: "Failed", make: func(*testBundle) error { return handler.Permanent(errReset) }, age: hour},
		{name: "Ready", make: func(*testBundle) error { return unsent{errReset} }, age: hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.provider.fails = []error{tt.make(b)}
			_, _ = b.do(t, calls.Options{})
			b.age(t, tt.age)
			for _, d := range []calls.Decision{calls.NotDone, calls.WasDone, calls.Retry} {
				require.Equal(t, tt.want && d == calls.NotDone, len(b.resolve(t, calls.Resolution{Decision: d})) == 1, d)
			}
		})
	}
	t.Run("Nowhere", func(t *testing.T) {
		t.Parallel()
		require.Empty(t, setup(t).resolve(t, calls.Resolution{Decision: calls.WasDone}))
	})
}

// A result that was not kept can be put in by a person; a call that is done is never
// made to be one that is not.
func TestResolve_ResultAfterwards(t *testing.T) {
	t.Parallel()

	b := setup(t, func(cfg *calls.Config) { cfg.MaxResult, cfg.Logger = 3, slog.New(slog.DiscardHandler) })
	_, err := b.do(t, calls.Options{})
	require.ErrorIs(t, err, calls.ErrNotKept)

	require.Empty(t, b.resolve(t, calls.Resolution{Decision: calls.NotDone}))
	require.Empty(t, b.resolve(t, calls.Resolution{Decision: calls.Retry}))
	require.Len(t, b.resolve(t, calls.Resolution{Decision: calls.WasDone, Result: []byte("invoice 7")}), 1)

	result, err := b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, "invoice 7", string(result))
	require.Len(t, b.provider.requests(), 1)
}

func TestResolve_Refused(t *testing.T) {
	t.Parallel()

	b := setup(t)
	tests := []struct {
		r    calls.Resolution
		want string
	}{
		{calls.Resolution{}, "there is no decision \"\", but: done, not-done, retry"},
		{calls.Resolution{Decision: calls.Retry, Result: []byte("x")}, "a result is only for a call that was done"},
		{calls.Resolution{Decision: calls.WasDone, Result: make([]byte, 1<<20+1)}, "the result has 1048577 bytes"},
		{calls.Resolution{Decision: calls.WasDone, By: strings.Repeat("x", 256)}, "the name of who decides"},
		{calls.Resolution{Decision: calls.WasDone, By: "a\nb"}, "the name of who decides"},
	}
	for _, tt := range tests {
		_, err := b.store().Resolve(t.Context(), b.Pool, tt.r, b.ref())
		require.ErrorContains(t, err, tt.want)
	}
}

func TestList(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for _, m := range []struct {
		id  string
		err error
	}{{"done", nil}, {"failed", handler.Permanent(errReset)}, {"started", errReset}, {"unsent", unsent{errReset}}, {"unknown", handler.ErrCallUnknown}} {
		b.msg = &handler.Message{ID: m.id}
		b.provider.fails = []error{m.err}
		_, _ = b.do(t, calls.Options{})
	}
	b.msg = &handler.Message{ID: "under way"}
	thaw := b.frozen(t, calls.Options{}, nil, nil)
	defer thaw()
	b.exec(t, `INSERT INTO dead_letters (consumer_id, message_id, message_text, fingerprint, reason, state)
		VALUES (consumer_id($1), message_id('unknown'), 'unknown', 1, 'call_unknown', 'open'), (consumer_id($1), message_id('unknown'), 'unknown', 2, 'mismatch', 'open')`, consumer)

	list := func(f calls.Filter) (found []string) {
		records, err := b.store().List(t.Context(), b.Pool, f)
		require.NoError(t, err)
		for _, r := range records {
			require.Equal(t, consumer, r.Consumer)
			found = append(found, r.Message+" "+r.State.String())
		}
		return found
	}
	require.Equal(t, []string{"under way started", "unknown unknown", "unsent ready", "started started", "failed failed", "done done"}, list(calls.Filter{}))
	require.Equal(t, []string{"under way started", "unknown unknown"}, list(calls.Filter{Limit: 2, Consumer: consumer, Step: step}))
	require.Equal(t, []string{"unknown unknown", "started started"}, list(calls.Filter{Open: true}))
	require.Equal(t, []string{"unknown unknown"}, list(calls.Filter{State: calls.Unknown}))
	require.Equal(t, []string{"failed failed"}, list(calls.Filter{Message: "failed"}))
	require.Equal(t, []string{"failed failed"}, list(calls.Filter{Message: dedup.MessageID("failed").String()}))
	require.Empty(t, list(calls.Filter{Consumer: "shipping"}))
	require.Empty(t, list(calls.Filter{Step: "other"}))
	_, err := b.store().List(t.Context(), b.Pool, calls.Filter{Limit: -1})
	require.ErrorContains(t, err, "limit -1 must not be negative")

	n, err := b.store().CountUnknown(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Equal(t, int64(1), n)

	b.msg = &handler.Message{ID: "unknown"}
	r, err := b.store().Load(t.Context(), b.Pool, b.ref())
	require.NoError(t, err)
	require.NotZero(t, r.LetterID)
	require.Equal(t, "open", r.LetterState)
	require.Contains(t, r.Error, handler.ErrCallUnknown.Error())
	b.msg = &handler.Message{ID: "nowhere"}
	_, err = b.store().Load(t.Context(), b.Pool, b.ref())
	require.ErrorIs(t, err, calls.ErrNotFound)
}

// Nobody who reads the table reads a result that a codec has encoded.
func TestCodec(t *testing.T) {
	t.Parallel()

	keys := codectest.New("key-1")
	b := setup(t, func(cfg *calls.Config) { cfg.Codec = keys })
	_, err := b.do(t, calls.Options{})
	require.NoError(t, err)

	raw, err := b.store().Load(t.Context(), b.Pool, b.ref())
	require.NoError(t, err)
	require.True(t, raw.Encoded)
	require.Equal(t, "key-1", raw.KeyID)
	require.NotContains(t, string(raw.Result), "invoice")
	read, err := b.store().WithCodec(keys).Load(t.Context(), b.Pool, b.ref())
	require.NoError(t, err)
	require.False(t, read.Encoded)
	require.Equal(t, "invoice 1", string(read.Result))
	for _, get := range []func() ([]byte, error){
		func() ([]byte, error) { return b.do(t, calls.Options{}) },
		func() ([]byte, error) { return b.result(t) },
	} {
		keys.Add("key-2") // the old one is needed still
		result, err := get()
		require.NoError(t, err)
		require.Equal(t, "invoice 1", string(result))
		keys.Remove("key-1")
		_, err = get()
		require.ErrorIs(t, err, handler.ErrCodec)
		keys.Add("key-1")
	}

	// A person's result is readable for the ledger.
	b.msg = &handler.Message{ID: "evt_2"}
	b.unknown(t)
	changed, err := b.store().WithCodec(keys).Resolve(t.Context(), b.Pool, calls.Resolution{Decision: calls.WasDone, Result: []byte("invoice 7")}, b.ref())
	require.NoError(t, err)
	require.Len(t, changed, 1)
	result, err := b.result(t)
	require.NoError(t, err)
	require.Equal(t, "invoice 7", string(result))
}

// The call is done, whatever the codec says: it is not made again.
func TestCodec_CannotEncode(t *testing.T) {
	t.Parallel()

	keys := codectest.New("key-1")
	b := setup(t, func(cfg *calls.Config) { cfg.Codec, cfg.Logger = keys, slog.New(slog.DiscardHandler) })
	call := func(ctx context.Context, key string) ([]byte, error) {
		keys.Fail(errReset)
		return b.provider.call(ctx, key)
	}
	for range 2 {
		_, err := b.doWith(t, call, calls.Options{})
		require.ErrorIs(t, err, calls.ErrNotKept)
	}
	require.Len(t, b.provider.requests(), 1)
}
