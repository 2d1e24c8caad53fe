package provider_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/provider"
)

// It knows what it did, also for keys, when it comes back from its own death.
func TestKeeper_Revives(t *testing.T) {
	t.Parallel()
	b := &testBundle{}
	k := b.keeper(t, "-script", "die,,die")

	require.Error(t, b.post(t, "k1", invoice).err)
	var again reply
	await(t, "another provider at the same address", func() bool {
		again = b.post(t, "k1", invoice)
		return again.err == nil
	})
	require.Equal(t, http.StatusCreated, again.status)
	require.JSONEq(t, `{"id":"inv_000001","number":"I-1"}`, again.body)
	require.Equal(t, 1, k.Deaths())

	require.Error(t, b.post(t, "k1", invoice).err)
	k.Kill() // while it is dead, or as it comes
	await(t, "a third one", func() bool { return b.post(t, "k1", invoice).err == nil })
	require.GreaterOrEqual(t, k.Deaths(), 2)

	counts := b.counts(t)
	require.Equal(t, 1, counts.Effects)
	require.Equal(t, 2, counts.Faults[provider.Die])
	k.Close()
	require.Equal(t, counts.Calls, b.inLedger(t, provider.Called))
	require.Equal(t, 1, b.inLedger(t, provider.Made))
	require.Error(t, b.post(t, "k1", invoice).err, "it is kept no more")
}

func TestMain_Refuses(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		args []string
		want string
	}{
		{name: "NoLedger", want: "-ledger is empty"},
		{name: "Fault", args: []string{"-ledger", "x", "-script", "slient"}, want: `unknown fault "slient"`},
		{name: "Chance", args: []string{"-ledger", "x", "-chance", "silent"}, want: `"silent" is not like silent=0.1`},
		{name: "Addr", args: []string{"-ledger", "x", "-addr", "0.0.0.0:0"}, want: "not an address of the loopback interface"},
		{name: "Folder", args: []string{"-ledger", "nowhere/x"}, want: "open the ledger"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if len(tt.args) > 1 && tt.args[1] == "x" {
				tt.args[1] = t.TempDir() + "/x"
			}
			var out bytes.Buffer

			err := provider.Main(t.Context(), tt.args, nil, &out, &out)

			require.ErrorContains(t, err, tt.want)
			require.Empty(t, out.String())
		})
	}
}
