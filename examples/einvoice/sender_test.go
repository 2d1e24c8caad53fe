package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/provider"
)

// serveProvider serves a provider in this process.
func serveProvider(t *testing.T, keys bool, script ...provider.Fault) (a account, p *provider.Provider, stop func()) {
	t.Helper()
	p, err := provider.New(filepath.Join(t.TempDir(), "ledger.jsonl"), provider.Config{
		Faults: provider.Faults{Script: script, LateBy: lateBy},
		Die:    func() { panic(http.ErrAbortHandler) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	a = account{Name: variantQuery, URL: server.URL + "/invoices"}
	if keys {
		a = account{Name: variantKeys, URL: server.URL + "/keyed/invoices", Keys: true}
	}
	return a, p, server.Close
}

// Whatever happens to the first call, there is one document at the provider, and
// we know it: with idempotency keys and without.
func TestSender_Faults(t *testing.T) {
	t.Parallel()

	for _, keys := range []bool{false, true} {
		for _, fault := range append(provider.AllFaults(), "") {
			t.Run(map[bool]string{false: "query", true: "keys"}[keys]+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				account, p, stopProvider := serveProvider(t, keys, fault)
				a, err := newAdapter(b.Pool, b.config(account))
				require.NoError(t, err)
				in, err := newSenderInbox(b.Pool, b.config(account), newAPI(account, slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				o := order{ID: "o1", TaxNumber: "DE123", Amount: 100}
				event, err := o.event("order", orderConfirmed)
				require.NoError(t, err)
				_, err = b.consumer(t, adapterName, a.request(order.invoice)).Process(t.Context(), &handler.Message{ID: "e1", CorrelationID: o.ID, Payload: event.Payload})
				require.NoError(t, err)
				require.Equal(t, []string{"PENDING"}, b.Texts(t, `SELECT status FROM invoice_requests`))

				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- in.Work(ctx) }()
				require.Eventually(t, func() bool {
					return len(b.Texts(t, `SELECT number FROM invoice_requests WHERE status = 'SENT'`)) == 1
				}, time.Minute, 20*time.Millisecond)
				stop()
				require.NoError(t, <-ended)
				stopProvider() // late work counts too

				require.Equal(t, 1, p.Counts().Effects)
				require.Equal(t, []string{"inv_000001"}, b.Texts(t, `SELECT provider_id FROM invoice_requests`))
				require.Empty(t, b.Texts(t, `SELECT reason FROM semel.dead_letters`))
			})
		}
	}
}

// A tax number that the provider refuses goes to a person at once, and says who
// they are and whom to ask.
func TestSender_Refused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account, p, _ := serveProvider(t, false)
	in, err := newSenderInbox(b.Pool, b.config(account), newAPI(account, slog.New(slog.DiscardHandler)))
	require.NoError(t, err)

	outcome, err := in.Process(t.Context(), &handler.Message{ID: "INV-o1", CorrelationID: "o1", Payload: []byte(`{"number":"INV-o1","tax_number":"de 1","amount":1}`)})

	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	require.Equal(t, []string{"INV-o1 permanent 1 o1 billing"},
		b.Texts(t, `SELECT concat_ws(' ', message_text, reason, attempts, correlation_id, owner) FROM semel.dead_letters`))
	require.Equal(t, 1, p.Counts().Calls)
	require.Zero(t, p.Counts().Effects)
}

// Who does not know of a request must not note that it was sent.
func TestSender_NotRequested(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account, _, _ := serveProvider(t, true)
	in, err := newSenderInbox(b.Pool, b.config(account), newAPI(account, slog.New(slog.DiscardHandler)))
	require.NoError(t, err)

	outcome, err := in.Process(t.Context(), &handler.Message{ID: "INV-o1", Payload: []byte(`{"number":"INV-o1","amount":1}`)})

	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
}

// The answer to another question is none.
func TestAPI_OtherAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`[{"id":"inv_1","number":"INV-other"}]`))
			return
		}
		_, _ = w.Write([]byte(`{"id":"inv_1","number":"INV-other"}`))
	}))
	t.Cleanup(server.Close)
	a := newAPI(account{Name: variantQuery, URL: server.URL}, slog.New(slog.DiscardHandler))

	_, err := a.create(t.Context(), "k", "INV-o1", []byte(`{}`))
	require.ErrorContains(t, err, "another one")
	_, _, err = a.find(t.Context(), "INV-o1")
	require.ErrorContains(t, err, "another one")
}
