package outbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHorizon(t *testing.T) {
	t.Parallel()

	var h horizon
	require.EqualValues(t, nothing, h.move(10, []string{"3/1"}), "it may have drawn any of the first ten")
	require.EqualValues(t, nothing, h.move(20, []string{"3/1", "4/1"}), "4/1 came later: it has drawn above ten")
	require.EqualValues(t, nothing, h.move(30, []string{"3/1", "4/1"}))
	require.EqualValues(t, 10, h.move(40, []string{"3/1", "5/1"}))
	require.EqualValues(t, 0, h.move(50, []string{"5/1"}))
	require.EqualValues(t, 30, h.move(60, []string{"-1/77"}), "it was prepared, or has ended")
	require.EqualValues(t, 0, h.move(70, nil), "a prepared one may have drawn any")
	require.EqualValues(t, nothing, h.move(80, nil))
	require.EqualValues(t, 0, h.move(79, nil), "the sequence went back")
	require.EqualValues(t, nothing, h.move(90, nil))
}
