package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// The key is what makes a repeated call one: without it there are two
// configurations, and the count must say so.
func TestAPI(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		key     string
		configs int
	}{
		{name: "WithKey", key: "mer_1", configs: 1},
		{name: "WithoutKey", configs: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			a := &api{pool: b.Pool}

			for range 2 {
				_, err := a.configure(t.Context(), configuration{MerchantID: "mer_1"}, tt.key)
				require.NoError(t, err)
			}

			require.Equal(t, tt.configs, b.Number(t, `SELECT count(*) FROM configurations`))
		})
	}
}

// An answer that is lost is no refusal: the call comes again, with the key.
func TestConfigure_LostAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := &api{pool: b.Pool}
	a.firsts.Store(everyLost - 1) // the next one
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	msg := &handler.Message{ID: "evt_1", Payload: []byte(`{"merchant_id":"mer_1"}`)}

	err := configure(t.Context(), http.DefaultClient, server.URL, msg)
	require.True(t, handler.IsUnavailable(err), "%v", err)
	require.NoError(t, configure(t.Context(), http.DefaultClient, server.URL, msg))

	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM configurations`))
	require.Equal(t, 2, b.Number(t, `SELECT calls FROM idempotency_keys WHERE key = 'mer_1'`))
}
