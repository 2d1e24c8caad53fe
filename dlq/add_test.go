package dlq_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

var messageID = [16]byte{1, 2, 3}

func letter(reason dlq.Reason, payload string, fingerprint int64) *dlq.Letter {
	return &dlq.Letter{
		ConsumerID: 1, MessageID: messageID, Fingerprint: &fingerprint, Reason: reason, Attempts: 3,
		Errors: []string{payload + " failed"}, Message: &handler.Message{ID: "evt_1", Payload: []byte(payload)},
	}
}

// A message that was purged and died again is one dead letter, open, and shows
// what a replay would run.
func TestStore_AddAgainReopensTheSameLetter(t *testing.T) {
	t.Parallel()

	for _, state := range []dlq.State{dlq.Open, dlq.Replaying, dlq.Resolved, dlq.Discarded} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			first := letter(dlq.Exhausted, "old", 1)
			first.FirstFailedAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			id := b.add(t, first)
			b.exec(t, `UPDATE semel.dead_letters SET state = $1, owner = 'ann', resolved_at = now()`, string(state))

			again := b.add(t, letter(dlq.Permanent, "new", 2))

			require.Equal(t, id, again)
			l := b.load(t, id)
			require.Equal(t, dlq.Open, l.State)
			require.Equal(t, dlq.Permanent, l.Reason)
			require.Equal(t, int64(2), l.Count)
			require.Equal(t, 6, l.Attempts)
			require.Equal(t, []string{"new failed"}, l.Errors)
			require.Equal(t, "new", string(l.Message.Payload))
			require.Equal(t, int64(2), *l.Fingerprint)
			require.Equal(t, "ann", l.Owner)
			require.Equal(t, first.FirstFailedAt, l.FirstFailedAt)
			require.True(t, l.LastFailedAt.After(l.FirstFailedAt))
			require.Zero(t, l.ResolvedAt)
		})
	}
}

// Each second payload under one id is a letter of its own; its copies are
// counted, and leave alone what a person has decided.
func TestStore_AddMismatch(t *testing.T) {
	t.Parallel()

	b := setup(t)
	dead := b.add(t, letter(dlq.Permanent, "original", 1))
	second := b.add(t, letter(dlq.Mismatch, "second", 2))
	third := b.add(t, letter(dlq.Mismatch, "third", 3))
	b.exec(t, `UPDATE semel.dead_letters SET state = 'discarded' WHERE id = $1`, second)

	b.inTx(t, func(tx pgx.Tx) {
		id, count, err := b.store.Add(t.Context(), tx, letter(dlq.Mismatch, "second", 2))
		require.NoError(t, err)
		require.Equal(t, second, id)
		require.EqualValues(t, 2, count)
	})

	require.Len(t, map[int64]bool{dead: true, second: true, third: true}, 3)
	l := b.load(t, second)
	require.Equal(t, int64(2), l.Count)
	require.Equal(t, 3, l.Attempts)
	require.Equal(t, dlq.Discarded, l.State)
	require.Equal(t, "second", string(l.Message.Payload))
	require.Equal(t, int64(1), b.load(t, dead).Count)
	require.Equal(t, int64(1), b.load(t, third).Count)
}

func TestStore_AddRefusesAnIncompleteLetter(t *testing.T) {
	t.Parallel()

	noMessage, noReason, noFingerprint := letter(dlq.Permanent, "", 1), letter("", "", 1), letter(dlq.Mismatch, "", 1)
	noMessage.Message, noFingerprint.Fingerprint = nil, nil
	tests := []struct {
		name   string
		letter *dlq.Letter
		want   string
	}{
		{name: "Message", letter: noMessage, want: "it has no message"},
		{name: "Reason", letter: noReason, want: "it has no reason"},
		{name: "Fingerprint", letter: noFingerprint, want: "a mismatch must have a fingerprint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, _, err := dlq.Store{}.Add(t.Context(), nil, tt.letter)

			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestStore_Again(t *testing.T) {
	t.Parallel()

	b := setup(t)
	mismatch := b.add(t, letter(dlq.Mismatch, "mismatch", 2)) // has the same id and must not be counted
	id := b.add(t, letter(dlq.BadID, "bad", 1))
	before := b.load(t, id)

	b.inTx(t, func(tx pgx.Tx) {
		found, err := b.store.Again(t.Context(), tx, 1, messageID)
		require.NoError(t, err)
		require.True(t, found)
		found, err = b.store.Again(t.Context(), tx, 2, messageID)
		require.NoError(t, err)
		require.False(t, found, "another consumer's")
	})

	l := b.load(t, id)
	require.Equal(t, int64(2), l.Count)
	require.Equal(t, 3, l.Attempts)
	require.True(t, l.LastFailedAt.After(before.LastFailedAt))
	require.Equal(t, before.FirstFailedAt, l.FirstFailedAt)
	require.Equal(t, int64(1), b.load(t, mismatch).Count)
}

func TestStore_Resolve(t *testing.T) {
	t.Parallel()

	tests := []struct {
		state dlq.State
		want  bool
	}{
		{state: dlq.Open, want: true},
		{state: dlq.Replaying, want: true},
		{state: dlq.Resolved},
		{state: dlq.Discarded},
	}
	b := setup(t)
	for i, tt := range tests {
		t.Run(string(tt.state), func(t *testing.T) {
			l := letter(dlq.Permanent, "", 1)
			l.MessageID[0] = byte(10 + i)
			id := b.add(t, l)
			b.exec(t, `UPDATE semel.dead_letters SET state = $1 WHERE id = $2`, string(tt.state), id)

			b.inTx(t, func(tx pgx.Tx) {
				done, err := b.store.Resolve(t.Context(), tx, id)
				require.NoError(t, err)
				require.Equal(t, tt.want, done)
			})

			after := b.load(t, id)
			require.Equal(t, tt.want, !after.ResolvedAt.IsZero())
			if tt.want {
				require.Equal(t, dlq.Resolved, after.State)
			} else {
				require.Equal(t, tt.state, after.State)
			}
		})
	}
}

func TestStore_Fail(t *testing.T) {
	t.Parallel()

	b := setup(t)
	id := b.add(t, letter(dlq.Permanent, "p", 1))
	b.exec(t, `UPDATE semel.dead_letters SET state = 'replaying'`)
	fail := func(id int64, f dlq.Failure) (done bool) {
		b.inTx(t, func(tx pgx.Tx) {
			var err error
			done, err = b.store.Fail(t.Context(), tx, id, f)
			require.NoError(t, err)
		})
		return done
	}

	for range 2 { // what had to be escaped is said once, not once a replay
		require.True(t, fail(id, dlq.Failure{Reason: dlq.Exhausted, Attempts: 2, Errors: []string{"again\x00"}}))
	}

	l := b.load(t, id)
	require.Equal(t, dlq.Open, l.State)
	require.Equal(t, dlq.Exhausted, l.Reason)
	require.Equal(t, 3+2+2, l.Attempts)
	require.Equal(t, int64(1), l.Count)
	require.Equal(t, []string{`again\x00`}, l.Errors)
	require.Equal(t, "errors escaped", l.Altered)

	b.exec(t, `UPDATE semel.dead_letters SET state = 'resolved'`)
	require.False(t, fail(id, dlq.Failure{Reason: dlq.Exhausted}), "settled elsewhere")
}

// A mismatch that became another reason would collide with the dead letter of
// the message whose id it has.
func TestStore_FailLeavesAMismatchOne(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.add(t, letter(dlq.Permanent, "original", 1))
	id := b.add(t, letter(dlq.Mismatch, "second", 2))

	b.inTx(t, func(tx pgx.Tx) {
		done, err := b.store.Fail(t.Context(), tx, id, dlq.Failure{Reason: dlq.Permanent, Attempts: 1, Errors: []string{"no"}})
		require.NoError(t, err)
		require.True(t, done)
		_, err = b.store.Fail(t.Context(), tx, id, dlq.Failure{Reason: dlq.Mismatch})
		require.ErrorContains(t, err, `the reason cannot be "mismatch"`)
	})

	l := b.load(t, id)
	require.Equal(t, dlq.Mismatch, l.Reason)
	require.Equal(t, []string{"no"}, l.Errors)
}
