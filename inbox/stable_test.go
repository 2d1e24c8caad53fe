package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// A provider changes a number in the payload when it sends a callback again: its
// source knows, and that is no mismatch. Another amount is.
func TestProcess_ComparesWhatIsStable(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{})
	process := func(payload, stable string) handler.Outcome {
		outcome, err := in.Process(t.Context(), &handler.Message{ID: "evt_1", Payload: []byte(payload), Stable: []byte(stable)})
		require.NoError(t, err)
		return outcome
	}

	require.Equal(t, handler.Processed, process(`{"amount":1,"pending":2}`, `{"amount":1}`))
	require.Equal(t, handler.Duplicate, process(`{"amount":1,"pending":1}`, `{"amount":1}`))
	require.Equal(t, handler.Mismatch, process(`{"amount":2,"pending":1}`, `{"amount":2}`))
}
