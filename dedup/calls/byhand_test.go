package calls_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
)

// A call was sent, and nobody knows its end. Then somebody writes into its row what
// no ledger writes. Whatever that is, the provider may have forgotten the key, and a
// call that is sent again unasked is paid twice: the provider is asked, or a person.
func TestByHand_SentIsNotUnsent(t *testing.T) {
	t.Parallel()

	for _, change := range []string{
		`sent_first_at = 'infinity'`,
		`sent_first_at = '-infinity'`,
		`sent_first_at = '0001-01-01 00:00Z'`,
		`sent_first_at = '0044-03-15 BC'`,
		`sent_first_at = '20000-01-01'`,
		`sent_first_at = NULL`,
		`idempotency_key = ''`,
		`epoch = 0, sent_first_at = sent_first_at - interval '2 days'`,
		`epoch = -9223372036854775808, sent_first_at = sent_first_at - interval '2 days'`,
		`epoch = 9223372036854775807, sent_first_at = sent_first_at - interval '2 days'`,
		`attempts = -1, sent_first_at = sent_first_at - interval '2 days'`,
		`state = 4, sent_first_at = NULL`,
		`state = 4, sent_first_at = 'infinity'`,
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.lost(t, calls.Options{})
			b.age(t, callTime)
			b.exec(t, `UPDATE calls SET `+change)

			l := &lookup{err: errReset}
			_, err := b.do(t, calls.Options{WasItDone: l.ask})
			require.ErrorIs(t, err, errReset)
			require.Len(t, l.asked, 1)
			l.err = nil // the provider cannot tell
			_, err = b.do(t, calls.Options{WasItDone: l.ask})
			require.ErrorIs(t, err, handler.ErrCallUnknown)
			_, err = b.do(t, calls.Options{})
			require.ErrorIs(t, err, handler.ErrCallUnknown)
			require.Len(t, b.provider.requests(), 1)
			records, err := b.store().List(t.Context(), b.Pool, calls.Filter{Open: true})
			require.NoError(t, err)
			require.Len(t, records, 1)
		})
	}
}

// AskFirst goes by the same: what was sent is asked for only when it has ended.
func TestByHand_AskFirst(t *testing.T) {
	t.Parallel()

	for _, change := range []string{`sent_first_at = 'infinity'`, `sent_first_at = '-infinity'`, `sent_first_at = NULL`} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			l := &lookup{answer: calls.No}
			o := calls.Options{AskFirst: true, WasItDone: l.ask}
			b.lost(t, o)
			b.exec(t, `UPDATE calls SET `+change)

			_, err := b.do(t, o)

			require.ErrorIs(t, err, calls.ErrInHand)
			require.Len(t, l.asked, 1)
			b.age(t, callTime)
			l.answer = calls.Unclear
			_, err = b.do(t, o)
			require.ErrorIs(t, err, handler.ErrCallUnknown)
			require.Len(t, b.provider.requests(), 1)
		})
	}
}

// A deadline without end is not over: an answer of the provider would be out of date
// as soon as it is given. A person sees the call, and can decide on it.
func TestByHand_DeadlineWithoutEnd(t *testing.T) {
	t.Parallel()

	for _, deadline := range []string{"infinity", "20000-01-01"} {
		t.Run(deadline, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			l := &lookup{answer: calls.No}
			o := calls.Options{KeyTTL: -1, WasItDone: l.ask}
			b.lost(t, o)
			b.exec(t, `UPDATE calls SET deadline = $1::text::timestamptz`, deadline)

			for range 2 { // what it gives back stands as it stood
				_, err := b.do(t, o)
				require.ErrorIs(t, err, calls.ErrInHand)
			}
			require.Empty(t, l.asked)
			records, err := b.store().List(t.Context(), b.Pool, calls.Filter{Open: true})
			require.NoError(t, err)
			require.Len(t, records, 1)
			require.True(t, records[0].UnderWay)
			require.GreaterOrEqual(t, records[0].Deadline.Year(), 9999)

			require.Len(t, b.resolve(t, calls.Resolution{Decision: calls.NotDone}), 1)
			_, err = b.do(t, o)
			require.NoError(t, err)
			require.Len(t, b.provider.requests(), 2)
		})
	}
}

// Somebody keeps a call in hand for ever: nobody makes it, everybody sees it, and a
// person who has looked at the provider ends that. Not while it runs, though.
func TestByHand_LeaseWithoutEnd(t *testing.T) {
	t.Parallel()

	for _, until := range []string{"infinity", "20000-01-01"} {
		t.Run(until, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.lost(t, calls.Options{})
			b.exec(t, `UPDATE calls SET lease_until = $1::text::timestamptz, created_at = '-infinity', updated_at = 'infinity'`, until)

			_, err := b.do(t, calls.Options{})
			require.ErrorIs(t, err, calls.ErrInHand)
			records, err := b.store().List(t.Context(), b.Pool, calls.Filter{Open: true})
			require.NoError(t, err)
			require.Len(t, records, 1)
			require.True(t, records[0].UnderWay)
			require.GreaterOrEqual(t, records[0].LeaseUntil.Year(), 9999)
			require.False(t, records[0].CreatedAt.IsZero())
			_, err = b.store().Load(t.Context(), b.Pool, b.ref())
			require.NoError(t, err)

			require.Empty(t, b.resolve(t, calls.Resolution{Decision: calls.Retry}), "its last attempt may be under way")
			b.exec(t, `UPDATE calls SET deadline = deadline - $1::interval`, callTime)
			require.Len(t, b.resolve(t, calls.Resolution{Decision: calls.Retry}), 1)
			_, err = b.do(t, calls.Options{})
			require.NoError(t, err)
		})
	}
}

// Numbers at their ends: a statement that fails would count as a database that is
// away, and all messages of the consumer would wait for it.
func TestByHand_Numbers(t *testing.T) {
	t.Parallel()

	for _, change := range []string{
		`attempts = 2147483647`, `attempts = -2147483648`,
		`epoch = 9223372036854775807`, `epoch = -9223372036854775808`, `epoch = 0`,
		`generation = 2147483647`, `generation = -2147483648`,
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.lost(t, calls.Options{})
			b.exec(t, `UPDATE calls SET `+change)

			_, err := b.do(t, calls.Options{})

			require.NoError(t, err)
			keys := b.provider.requests()
			require.Len(t, keys, 2)
			require.Equal(t, keys[0], keys[1])
		})
	}
	t.Run("NoFurtherGeneration", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.provider.fails = []error{handler.Permanent(errReset)}
		_, err := b.do(t, calls.Options{})
		require.ErrorIs(t, err, errReset)
		b.exec(t, `UPDATE calls SET generation = $1`, math.MaxInt32)

		_, err = b.do(t, calls.Options{})

		require.True(t, handler.IsPermanent(err))
		require.Len(t, b.provider.requests(), 1)
		require.False(t, b.row(t).Held)
	})
	t.Run("Resolve", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.unknown(t)
		b.exec(t, `UPDATE calls SET epoch = 9223372036854775807`)
		require.Len(t, b.resolve(t, calls.Resolution{Decision: calls.Retry}), 1)
	})
}
