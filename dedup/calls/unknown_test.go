package calls_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
)

// lookup is how a provider is asked, and what it says.
type lookup struct {
	asked  []calls.Call
	result []byte
	answer calls.Answer
	err    error
}

func (l *lookup) ask(_ context.Context, c calls.Call) ([]byte, calls.Answer, error) {
	l.asked = append(l.asked, c)
	return l.result, l.answer, l.err
}

const (
	callTime = 15 * time.Second // timeout and grace
	hour     = time.Hour
)

// lost makes a call whose answer is lost.
func (b *testBundle) lost(t *testing.T, o calls.Options) {
	t.Helper()
	b.provider.fails = []error{errReset}
	_, err := b.do(t, o)
	require.ErrorIs(t, err, errReset)
}

// A key is trusted until a call could reach the provider after it was forgotten.
func TestUnknown_KeyIsRemembered(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		after time.Duration
		ttl   time.Duration
		again bool
	}{
		{name: "AtOnce", again: true},
		{name: "Default", after: 24*hour - callTime - time.Minute, again: true},
		{name: "DefaultOver", after: 24*hour - callTime, again: false},
		{name: "Own", ttl: hour, after: hour - callTime - time.Minute, again: true},
		{name: "OwnOver", ttl: hour, after: hour - callTime, again: false},
		{name: "NoKeys", ttl: -1, after: callTime, again: false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			o := calls.Options{KeyTTL: tt.ttl}
			b.lost(t, o)
			b.age(t, tt.after)

			_, err := b.do(t, o)

			if tt.again {
				require.NoError(t, err)
				keys := b.provider.requests()
				require.Equal(t, keys[0], keys[1])
				return
			}
			require.ErrorIs(t, err, handler.ErrCallUnknown)
			require.True(t, handler.IsPermanent(err))
			require.Equal(t, row{State: "unknown", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
			require.Len(t, b.provider.requests(), 1)
			_, err = b.do(t, o) // replayed, and nobody has decided
			require.ErrorIs(t, err, handler.ErrCallUnknown)
			require.Len(t, b.provider.requests(), 1)
		})
	}
}

// The provider remembers a key from when it saw it first: a repetition does not
// prolong that.
func TestUnknown_KeyIsRememberedFromTheFirstTimeOn(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for range 3 {
		b.lost(t, calls.Options{})
		b.age(t, 8*hour)
	}

	_, err := b.do(t, calls.Options{})

	require.ErrorIs(t, err, handler.ErrCallUnknown)
	require.Len(t, b.provider.requests(), 3)
}

func TestUnknown_WasItDone(t *testing.T) {
	t.Parallel()

	errDown := errors.New("provider is down")
	tests := []struct {
		name    string
		lookup  lookup
		want    string // the result
		wantErr error
		row     row
		effects int
	}{
		{
			name: "Yes", lookup: lookup{result: []byte("invoice 7"), answer: calls.Yes},
			want: "invoice 7", row: row{State: "done", Generation: 1, Attempts: 1, Sent: true},
		},
		{
			name: "No", lookup: lookup{answer: calls.No},
			want: "invoice 1", row: row{State: "done", Generation: 1, Attempts: 2, Sent: true}, effects: 1,
		},
		{
			name: "Unclear", lookup: lookup{answer: calls.Unclear},
			wantErr: handler.ErrCallUnknown, row: row{State: "unknown", Generation: 1, Attempts: 1, Sent: true},
		},
		{
			name: "Error", lookup: lookup{err: errDown},
			wantErr: errDown, row: row{State: "started", Generation: 1, Attempts: 1, Sent: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			o := calls.Options{KeyTTL: -1, WasItDone: tt.lookup.ask}
			b.lost(t, o)
			b.age(t, callTime)

			result, err := b.do(t, o)

			require.Equal(t, tt.row, b.row(t))
			require.Equal(t, tt.effects, b.provider.effects())
			require.Len(t, tt.lookup.asked, 1)
			asked := tt.lookup.asked[0]
			require.Equal(t, b.provider.requests()[0], asked.Key)
			require.Equal(t, [...]any{consumer, "evt_1", step, 1, 1}, [...]any{asked.Consumer, asked.Message, asked.Step, asked.Generation, asked.Attempt})
			require.False(t, asked.SentFirst.IsZero() || asked.Deadline.Before(asked.SentFirst))
			if tt.wantErr != nil {
				require.ErrorIs(t, err, tt.wantErr)
				require.Equal(t, errors.Is(tt.wantErr, handler.ErrCallUnknown), handler.IsPermanent(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, string(result))
			result, err = b.result(t)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(result))
		})
	}
}

// While the first call may still be under way the provider's answer would be out of
// date as soon as it is given: the message waits.
func TestUnknown_NotAskedWhileUnderWay(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &lookup{answer: calls.No}
	o := calls.Options{KeyTTL: -1, WasItDone: l.ask, Timeout: 10 * time.Minute}
	b.lost(t, o)

	_, err := b.do(t, o)
	require.ErrorIs(t, err, calls.ErrInHand)
	require.True(t, handler.IsInFlight(err))
	require.ErrorContains(t, err, "its last attempt may be under way until")
	require.Empty(t, l.asked)
	require.Equal(t, row{State: "started", Generation: 1, Attempts: 1, Sent: true}, b.row(t))

	b.age(t, 10*time.Minute) // the grace runs
	_, err = b.do(t, o)
	require.ErrorIs(t, err, calls.ErrInHand)
	b.age(t, 5*time.Second)
	_, err = b.do(t, o)
	require.NoError(t, err)
	require.Len(t, l.asked, 1)
	require.Len(t, b.provider.requests(), 2)
}

// A deploy may bring a way to ask: what was in front of a person is asked when the
// person replays it.
func TestUnknown_AskedAfterAll(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.lost(t, calls.Options{KeyTTL: -1})
	b.age(t, callTime)
	_, err := b.do(t, calls.Options{KeyTTL: -1})
	require.ErrorIs(t, err, handler.ErrCallUnknown)

	l := &lookup{answer: calls.Yes, result: []byte("invoice 7")}
	result, err := b.do(t, calls.Options{KeyTTL: -1, WasItDone: l.ask})

	require.NoError(t, err)
	require.Equal(t, "invoice 7", string(result))
}

// The call itself may know that nobody can know.
func TestUnknown_SaysTheCall(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.provider.fails = []error{handler.ErrCallUnknown}
	_, err := b.do(t, calls.Options{})
	require.ErrorIs(t, err, handler.ErrCallUnknown)
	require.True(t, handler.IsPermanent(err))
	require.Equal(t, row{State: "unknown", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
}

func TestAskFirst(t *testing.T) {
	t.Parallel()

	t.Run("Absent", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		l := &lookup{answer: calls.No}
		result, err := b.do(t, calls.Options{AskFirst: true, WasItDone: l.ask})
		require.NoError(t, err)
		require.Equal(t, "invoice 1", string(result))
		require.Len(t, l.asked, 1)
		require.Zero(t, l.asked[0].Attempt)
		require.True(t, l.asked[0].SentFirst.IsZero())
		require.Equal(t, b.provider.requests()[0], l.asked[0].Key)
		require.Equal(t, row{State: "done", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
	})
	t.Run("There", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		l := &lookup{answer: calls.Yes, result: []byte("invoice 7")}
		result, err := b.do(t, calls.Options{AskFirst: true, WasItDone: l.ask})
		require.NoError(t, err)
		require.Equal(t, "invoice 7", string(result))
		require.Empty(t, b.provider.requests())
		require.Equal(t, row{State: "done", Generation: 1}, b.row(t))
	})
	t.Run("UnclearBeforeAnythingIsSent", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		_, err := b.do(t, calls.Options{AskFirst: true, WasItDone: (&lookup{}).ask})
		require.True(t, handler.IsUnavailable(err))
		require.False(t, handler.IsPermanent(err))
		require.Empty(t, b.provider.requests())
		require.Equal(t, row{State: "ready", Generation: 1}, b.row(t))
	})
	t.Run("NeverRepeatedUnasked", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		l := &lookup{answer: calls.No}
		o := calls.Options{AskFirst: true, WasItDone: l.ask}
		b.lost(t, o)
		_, err := b.do(t, o) // its key would be remembered, if it had any
		require.ErrorIs(t, err, calls.ErrInHand)
		require.Len(t, l.asked, 1)
		b.age(t, callTime)
		_, err = b.do(t, o)
		require.NoError(t, err)
		require.Len(t, l.asked, 2)
		require.Len(t, b.provider.requests(), 2)
	})
	t.Run("AfterARefusal", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		l := &lookup{answer: calls.No}
		o := calls.Options{AskFirst: true, WasItDone: l.ask}
		b.provider.fails = []error{handler.Permanent(errReset)}
		_, err := b.do(t, o)
		require.ErrorIs(t, err, errReset)
		_, err = b.do(t, o)
		require.NoError(t, err)
		require.Len(t, l.asked, 2)
		require.Equal(t, 2, l.asked[1].Generation)
		require.Equal(t, b.provider.requests()[1], l.asked[1].Key)
		require.Equal(t, row{State: "done", Generation: 2, Attempts: 2, Sent: true}, b.row(t))
	})
	// What refused the call may have done it, "there already" for one: nobody stands
	// still for that.
	t.Run("ThereAfterARefusal", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		l := &lookup{answer: calls.No}
		o := calls.Options{AskFirst: true, WasItDone: l.ask}
		b.provider.fails = []error{handler.Permanent(errReset)}
		_, err := b.do(t, o)
		require.ErrorIs(t, err, errReset)
		l.answer, l.result = calls.Yes, []byte("invoice 7")
		result, err := b.do(t, o)
		require.NoError(t, err)
		require.Equal(t, "invoice 7", string(result))
		require.Len(t, b.provider.requests(), 1)
		require.Equal(t, row{State: "done", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
	})
	// A person said that it was not done, and the provider knows better.
	t.Run("ThereAfterADecision", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		l := &lookup{answer: calls.No}
		o := calls.Options{AskFirst: true, WasItDone: l.ask}
		b.lost(t, o)
		b.age(t, callTime)
		require.Len(t, b.resolve(t, calls.Resolution{Decision: calls.NotDone}), 1)
		l.answer, l.result = calls.Yes, []byte("invoice 7")
		result, err := b.do(t, o)
		require.NoError(t, err)
		require.Equal(t, "invoice 7", string(result))
		require.Len(t, b.provider.requests(), 1)
		require.Equal(t, row{State: "done", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
	})
	t.Run("UnclearAfterARefusal", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		l := &lookup{answer: calls.No}
		o := calls.Options{AskFirst: true, WasItDone: l.ask}
		b.provider.fails = []error{handler.Permanent(errReset)}
		_, err := b.do(t, o)
		require.ErrorIs(t, err, errReset)
		l.answer = calls.Unclear
		_, err = b.do(t, o)
		require.True(t, handler.IsUnavailable(err))
		require.Equal(t, row{State: "failed", Generation: 1, Attempts: 1, Sent: true}, b.row(t))
	})
}
