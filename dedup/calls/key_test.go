package calls_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
)

// The key is a hash in the form of a UUID, which every provider takes. Nothing of
// the message can be read in it, in a provider's logs for one.
func TestKey(t *testing.T) {
	t.Parallel()

	b := setup(t)
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, id := range []string{"evt_1", "DE89370400440532013000", "8f14e45f-ceea-467f-9b3a-2d1c0e6f7a11", "Zoë <zoe@example.org>", strings.Repeat("x", 255)} {
		b.msg = &handler.Message{ID: id}
		var again string
		for range 2 {
			_, err := b.doWith(t, func(_ context.Context, key string) ([]byte, error) {
				require.Regexp(t, form, key)
				require.NotContains(t, key, id)
				require.NotContains(t, key, strings.ReplaceAll(id, "-", ""))
				require.True(t, again == "" || again == key)
				again = key
				return nil, errReset
			}, calls.Options{})
			require.ErrorIs(t, err, errReset)
		}
		require.False(t, seen[again])
		seen[again] = true
	}
}

// A vector: who changes how keys are made makes every call under way a second time.
func TestKey_NeverChanges(t *testing.T) {
	t.Parallel()

	b := setup(t)
	_, err := b.do(t, calls.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"0854ba94-5d0c-8dff-8984-8156e7a83396"}, b.provider.requests())
}

// A user's own key is asked for once in a generation: code that derives another one
// tomorrow does not repeat what is under way today under it.
func TestKey_OfTheUser(t *testing.T) {
	t.Parallel()

	b := setup(t)
	derive := func(prefix string) calls.Options {
		return calls.Options{Key: func(c calls.Call) string {
			require.Empty(t, c.Key)
			return fmt.Sprintf("%s-%s-%s-%d", prefix, c.Consumer, c.Message, c.Generation)
		}}
	}
	b.provider.fails = []error{errReset, handler.Permanent(errReset)}

	for _, o := range []calls.Options{derive("old"), derive("new"), derive("new")} {
		_, _ = b.do(t, o)
	}

	require.Equal(t, []string{"old-billing-evt_1-1", "old-billing-evt_1-1", "new-billing-evt_1-2"}, b.provider.requests())
}
