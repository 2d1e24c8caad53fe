package dlq_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
)

// Somebody has written into errors what no program of ours does. Whoever lists the
// dead letters, or looks at this one, reads it all the same, and all the others.
func TestStore_ErrorsByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.add(t, letter(dlq.Permanent, "as it was", 1))
	other := letter(dlq.Permanent, "changed", 2)
	other.MessageID = [16]byte{9}
	id := b.add(t, other)
	for errors, want := range map[string][]string{
		`{NULL}`:          {""},
		`{a,NULL}`:        {"a", ""},
		`{{a,b},{c,NULL}}`: {"a", "b", "c", ""},
		`{}`:              {},
	} {
		b.exec(t, `UPDATE semel.dead_letters SET errors = $1::text[] WHERE id = $2`, errors, id)

		require.Equal(t, want, b.load(t, id).Errors, errors)
		letters, err := b.store.List(t.Context(), b.pool, dlq.Filter{})
		require.NoError(t, err, errors)
		require.Len(t, letters, 2)
		require.Equal(t, want, letters[0].Errors, errors)
	}
}
