package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// badIDs are ids that identify nothing.
func badIDs() map[string]string {
	return map[string]string{
		"Empty":        "",
		"WhiteSpace":   " \t\n ",
		"TooLong":      strings.Repeat("x", 300),
		"TenKilobytes": strings.Repeat("x", 10_000),
		"NUL":          "evt\x001",
		"NotUTF8":      "evt\xff1",
	}
}

// Case D8: messages without a usable id were handled unguarded, or redelivered
// for ever (DBOS py#759; watermill#184).
func TestIDs_Unusable(t *testing.T) {
	t.Parallel()

	for name, id := range badIDs() {
		t.Run(name+"DeadLetter", func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, effect, inbox.Config{})
			msg := message(id)
			msg.Origin = handler.Origin{Transport: "rabbitmq", Topic: "payments"}

			outcome, err := in.Process(t.Context(), msg)
			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)

			outcome, err = in.Process(t.Context(), msg) // a further copy
			require.NoError(t, err)
			require.Equal(t, handler.Duplicate, outcome)

			letters := b.letters(t)
			require.Len(t, letters, 1)
			require.Equal(t, dlq.BadID, letters[0].Reason)
			require.EqualValues(t, 2, letters[0].Count, "a further copy raises the count")
			require.Equal(t, id, letters[0].Message.ID, "byte for byte")
			require.Zero(t, b.count(t, `SELECT count(*) FROM effects`))

			other := message(id)
			other.Payload = []byte("another one")
			other.Origin = msg.Origin
			outcome, err = in.Process(t.Context(), other)
			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
			require.Len(t, b.letters(t), 2, "two messages without id are two")
		})

		t.Run(name+"Position", func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				_, err := tx.Exec(ctx, `INSERT INTO effects (message_id) VALUES ($1)`, msg.Origin.Position)
				return err
			}, inbox.Config{BadID: inbox.BadIDPosition})
			for _, position := range []string{"topic/0/1", "topic/0/1", "topic/0/2"} {
				msg := message(id)
				msg.Origin = handler.Origin{Transport: "kafka", Topic: "payments", Position: position}
				_, err := in.Process(t.Context(), msg)
				require.NoError(t, err)
			}
			require.Equal(t, 1, b.effects(t, "topic/0/1"), "a redelivery is a duplicate")
			require.Equal(t, 1, b.effects(t, "topic/0/2"), "a resend is not")

			msg := message(id) // no position: nothing to guard it by
			outcome, err := in.Process(t.Context(), msg)
			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
		})

		t.Run(name+"NaturalKey", func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, effect, inbox.Config{ID: func(msg *handler.Message) (string, error) {
				var body struct{ Order string }
				if err := json.Unmarshal(msg.Payload, &body); err != nil {
					return "", err
				}
				return body.Order, nil
			}})
			for _, payload := range []string{`{"order":"A-1"}`, `{"order":"A-1"}`, `{"order":"A-2"}`} {
				msg := &handler.Message{ID: "same", Payload: []byte(payload)}
				_, err := in.Process(t.Context(), msg)
				require.NoError(t, err)
			}
			require.Equal(t, 2, b.effects(t, "same"))

			outcome, err := in.Process(t.Context(), &handler.Message{ID: id, Payload: []byte(`{"order":`)})
			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
		})
	}
}

// The function for the id is user code: whatever it does, the message reaches
// a person.
func TestIDs_UsersFunctionFails(t *testing.T) {
	t.Parallel()

	tests := map[string]func(*handler.Message) (string, error){
		"Error":    func(*handler.Message) (string, error) { return "x", errors.New("no order in it") },
		"Panic":    func(*handler.Message) (string, error) { panic("boom") },
		"Unusable": func(*handler.Message) (string, error) { return " ", nil },
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			outcome, err := b.inbox(t, effect, inbox.Config{ID: f}).Process(t.Context(), message("evt_1"))

			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
			letters := b.letters(t)
			require.Len(t, letters, 1)
			require.Equal(t, dlq.BadID, letters[0].Reason)
		})
	}
}

// A source of somebody's own may place its messages by bytes that are no text:
// the claim was refused by the database, and so was the dead letter.
func TestIDs_PositionThatIsNoText(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{BadID: inbox.BadIDPosition})
	msg := message("")
	msg.Origin = handler.Origin{Transport: "tape", Position: "a\x00\xff" + strings.Repeat("x", 10_000)}

	for _, want := range []handler.Outcome{handler.Processed, handler.Duplicate} {
		outcome, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
	require.Equal(t, 1, b.effects(t, ""))
}
