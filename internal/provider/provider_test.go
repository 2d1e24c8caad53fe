package provider_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/provider"
)

const invoice = `{"number":"I-1","tax_number":"DE123456789","amount":100}`

func TestProvider_WithoutKeysEveryCallIsAnother(t *testing.T) {
	t.Parallel()
	b := setup(t, provider.Config{})

	require.Zero(t, b.exist(t, "I-1"))
	first, second := b.post(t, "", invoice), b.post(t, "", invoice)

	require.Equal(t, http.StatusCreated, first.status)
	require.JSONEq(t, `{"id":"inv_000001","number":"I-1"}`, first.body)
	require.JSONEq(t, `{"id":"inv_000002","number":"I-1"}`, second.body)
	require.Equal(t, 2, b.exist(t, "I-1"))
	require.Equal(t, provider.Counts{Calls: 2, Effects: 2, Queries: 2, Faults: map[provider.Fault]int{}}, b.counts(t))
	require.Equal(t, 2, b.inLedger(t, provider.Called))
	require.Equal(t, 2, b.inLedger(t, provider.Made))
	require.Equal(t, 2, b.inLedger(t, provider.Asked))
}

func TestProvider_OneKeyOneInvoice(t *testing.T) {
	t.Parallel()
	b := setup(t, provider.Config{KeyTTL: time.Hour})

	first, again := b.post(t, "k1", invoice), b.post(t, "k1", invoice)
	other := b.post(t, "k1", strings.ReplaceAll(invoice, "100", "101"))
	next := b.post(t, "k2", invoice)
	none := b.do(t, http.MethodPost, "/keyed/invoices", invoice)

	require.Equal(t, http.StatusCreated, first.status)
	require.Equal(t, first.body, again.body)
	require.Equal(t, http.StatusUnprocessableEntity, other.status)
	require.JSONEq(t, `{"error":"key_reused"}`, other.body)
	require.JSONEq(t, `{"id":"inv_000002","number":"I-1"}`, next.body)
	require.Equal(t, http.StatusBadRequest, none.status)
	require.Equal(t, 4, b.counts(t).Calls)
	require.Equal(t, 2, b.counts(t).Effects)
}

func TestProvider_ForgetsKeys(t *testing.T) {
	t.Parallel()
	b := setup(t, provider.Config{KeyTTL: time.Nanosecond})

	require.NotEqual(t, b.post(t, "k1", invoice).body, b.post(t, "k1", invoice).body)
}

// What has waited for too long is not done, and can be done later.
func TestProvider_TooLate(t *testing.T) {
	t.Parallel()
	b := setup(t, provider.Config{
		Patience: 20 * time.Millisecond,
		Faults:   provider.Faults{Script: []provider.Fault{provider.Late, provider.Late}, LateBy: 25 * time.Millisecond},
	})

	for _, key := range []string{"", "k1"} {
		r := b.post(t, key, invoice)
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.JSONEq(t, `{"error":"too_late"}`, r.body)
	}
	require.Zero(t, b.exist(t, "I-1"))
	await(t, "a moment at which it does not wait", func() bool { return b.post(t, "k1", invoice).status == http.StatusCreated })
}

func TestProvider_Refuses(t *testing.T) {
	t.Parallel()
	b := setup(t, provider.Config{Faults: provider.Faults{Secret: "old"}})

	tests := []struct {
		name   string
		body   string
		token  string
		status int
	}{
		{name: "NoJSON", body: "{", status: http.StatusBadRequest},
		{name: "NoNumber", body: "{}", status: http.StatusBadRequest},
		{name: "TooMuch", body: strings.Repeat(" ", 2<<20), status: http.StatusBadRequest},
		{name: "TaxNumber", body: strings.ReplaceAll(invoice, "DE1", "1"), token: "old", status: http.StatusUnprocessableEntity},
		{name: "OtherSecret", body: invoice, token: "new", status: http.StatusUnauthorized},
		{name: "NoSecret", body: invoice, status: http.StatusUnauthorized},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := b.do(t, http.MethodPost, "/invoices", tt.body, "Authorization", "Bearer "+tt.token)

			require.NoError(t, r.err)
			require.Equal(t, tt.status, r.status, r.body)
			require.Zero(t, b.counts(t).Effects)
		})
	}
}

func TestProvider_Maintenance(t *testing.T) {
	t.Parallel()
	b := setup(t, provider.Config{})
	until := time.Now().Add(time.Minute).Format(time.RFC3339Nano)
	require.Equal(t, http.StatusNoContent, b.do(t, http.MethodPut, "/faults", `{"until":"`+until+`"}`).status)

	r := b.post(t, "", invoice)

	require.Equal(t, http.StatusServiceUnavailable, r.status)
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 60, after, 15)
	require.Equal(t, http.StatusServiceUnavailable, b.do(t, http.MethodGet, "/invoices?number=I-1", "").status)
	require.Equal(t, http.StatusNoContent, b.do(t, http.MethodPut, "/faults", `{}`).status)
	require.Equal(t, http.StatusCreated, b.post(t, "", invoice).status)
	require.Equal(t, provider.Counts{Calls: 2, Effects: 1, Queries: 1, Faults: map[provider.Fault]int{provider.Maintenance: 2}}, b.counts(t))
}

func TestProvider_RefusesFaults(t *testing.T) {
	t.Parallel()
	b := setup(t, provider.Config{})

	for _, body := range []string{
		`{"chance":{"slient":0.1}}`, `{"chance":{"silent":-0.1}}`, `{"chance":{"silent":0.6,"late":0.6}}`,
		`{"script":["slient"]}`, `{"late_by":-1}`, `{"latte_by":1}`, `{`,
	} {
		require.Equal(t, http.StatusBadRequest, b.do(t, http.MethodPut, "/faults", body).status, body)
	}
}

// Each fault does what it says: to the client, and at the provider.
func TestProvider_Faults(t *testing.T) {
	t.Parallel()

	tests := []struct {
		fault   provider.Fault
		status  int // 0: no answer
		effects int
	}{
		{fault: "", status: http.StatusCreated, effects: 1},
		{fault: provider.ResetBefore},
		{fault: provider.Unavailable, status: http.StatusServiceUnavailable},
		{fault: provider.ResetAfter, effects: 1},
		{fault: provider.Silent, effects: 1},
		{fault: provider.Late, effects: 0}, // not yet
		{fault: provider.ErrorAfter, status: http.StatusInternalServerError, effects: 1},
		{fault: provider.AnswerTwice, status: http.StatusCreated, effects: 1},
		{fault: provider.GarbageAfter, status: http.StatusCreated, effects: 1},
		{fault: provider.Die, effects: 1},
	}
	for _, tt := range tests {
		for _, key := range []string{"", "k1"} {
			t.Run(string(tt.fault)+key, func(t *testing.T) {
				t.Parallel()
				b := setup(t, provider.Config{
					Faults: provider.Faults{Script: []provider.Fault{tt.fault}, LateBy: 5 * time.Second},
					Die:    func() { panic(http.ErrAbortHandler) },
				})
				b.client.Timeout = map[provider.Fault]time.Duration{provider.Silent: 2 * time.Second, provider.Late: 200 * time.Millisecond}[tt.fault]

				r := b.post(t, key, invoice)

				require.Equal(t, tt.status == 0, r.err != nil, "%v", r.err)
				require.Equal(t, tt.status, r.status)
				if tt.fault == provider.ResetBefore || tt.fault == provider.ResetAfter {
					require.ErrorIs(t, r.err, syscall.ECONNRESET)
				}
				b.withClient(t) // net/http may take what comes behind an answer for the next one
				if tt.fault == provider.Late {
					if key != "" {
						r := b.post(t, key, invoice)
						require.Equal(t, http.StatusConflict, r.status)
						require.JSONEq(t, `{"error":"in_progress"}`, r.body)
					}
					require.Zero(t, b.exist(t, "I-1"), "asked too early")
					await(t, "the late work", func() bool { return b.exist(t, "I-1") == 1 })
				} else {
					require.Equal(t, tt.effects, b.exist(t, "I-1"))
				}
				if key != "" { // whatever happened, the key leads to one
					require.Equal(t, http.StatusCreated, b.post(t, key, invoice).status)
					require.Equal(t, 1, b.exist(t, "I-1"))
				}
			})
		}
	}
}

func TestProvider_TellsThatItHeard(t *testing.T) {
	t.Parallel()
	b := setup(t, provider.Config{Faults: provider.Faults{Script: []provider.Fault{provider.Silent}}})
	heard := make(chan int, 1)
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
		heard <- code
		return http.ErrAbortHandler // enough
	}}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, b.url+"/invoices", strings.NewReader(invoice))
	require.NoError(t, err)
	req.Header.Set("Prefer", "processing")

	_, err = b.client.Do(req) //nolint:bodyclose // there is none

	require.ErrorIs(t, err, http.ErrAbortHandler)
	require.Equal(t, http.StatusProcessing, <-heard)
	require.Equal(t, 1, b.counts(t).Calls)
}

// What chance decides is the same with the same seed, and another after a
// restart.
func TestProvider_Seed(t *testing.T) {
	t.Parallel()
	chance := map[provider.Fault]float64{provider.Unavailable: 0.5}
	fates := func(b *testBundle) (s string) {
		for range 20 {
			s += strconv.Itoa(b.post(t, "", invoice).status)
		}
		return s
	}
	one := setup(t, provider.Config{Seed: 7, Faults: provider.Faults{Chance: chance}})
	same := setup(t, provider.Config{Seed: 7, Faults: provider.Faults{Chance: chance}})
	other := setup(t, provider.Config{Seed: 8, Faults: provider.Faults{Chance: chance}})

	first := fates(one)
	require.Equal(t, first, fates(same))
	require.NotEqual(t, first, fates(other))

	again, err := provider.New(one.path, provider.Config{Seed: 7, Faults: provider.Faults{Chance: chance}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	require.Equal(t, one.own.Counts(), again.Counts())
	server := httptest.NewServer(again)
	t.Cleanup(server.Close)
	one.url = server.URL
	require.NotEqual(t, first, fates(one))
}

func TestNew_TornLine(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/ledger.jsonl"
	whole := `{"kind":"call","number":"I-1","at":"2026-01-01T00:00:00Z"}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(whole+`{"kind":"eff`), 0o600))

	entries, err := provider.Read(path)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	p, err := provider.New(path, provider.Config{})
	require.NoError(t, err)
	require.NoError(t, p.Close())

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, whole, string(text))
	require.Equal(t, 1, p.Counts().Calls)

	require.NoError(t, os.WriteFile(path, []byte("nonsense\n"+whole), 0o600))
	_, err = provider.New(path, provider.Config{})
	require.ErrorContains(t, err, "line 1")
}
