package programtest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var pair = regexp.MustCompile(`(\w+)=(-?\d+)`)

// Result reads the numbers of the last line, which must be RESULT and these
// keys in this order.
func Result(t *testing.T, output string, keys ...string) map[string]int {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(output), "\n")
	last := lines[len(lines)-1]
	require.Regexp(t, `^RESULT( \w+=-?\d+)+$`, last)
	numbers := map[string]int{}
	var found []string
	for _, kv := range pair.FindAllStringSubmatch(last, -1) {
		n, err := strconv.Atoi(kv[2])
		require.NoError(t, err)
		numbers[kv[1]] = n
		found = append(found, kv[1])
	}
	require.Equal(t, keys, found)
	return numbers
}
