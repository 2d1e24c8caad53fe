package calls_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
)

func TestDo(t *testing.T) {
	t.Parallel()

	b := setup(t)

	result, err := b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, "invoice 1", string(result))
	require.Equal(t, row{State: "done", Generation: 1, Attempts: 1, Sent: true}, b.row(t))

	result, err = b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, "invoice 1", string(result))
	require.Len(t, b.provider.requests(), 1)

	result, err = b.result(t)
	require.NoError(t, err)
	require.Equal(t, "invoice 1", string(result))
}

func TestDo_AnswerLost(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.provider.fails, b.provider.works = []error{errReset}, true

	_, err := b.do(t, calls.Options{})
	require.ErrorIs(t, err, errReset)
	require.Equal(t, row{State: "started", Generation: 1, Attempts: 1, Sent: true}, b.row(t))

	result, err := b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, "invoice 1", string(result))
	keys := b.provider.requests()
	require.Len(t, keys, 2)
	require.Equal(t, keys[0], keys[1])
	require.Equal(t, 1, b.provider.effects())
}
