package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/semel-go/semel/internal/provider"
)

// childEnv makes the test binary the provider.
const childEnv = "SEMEL_PROVIDER_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := provider.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// testBundle is a provider and a client that gives up soon.
type testBundle struct {
	path   string // of the ledger
	url    string
	client *http.Client
	own    *provider.Provider // where it is none of another process
}

func setup(t *testing.T, c provider.Config) *testBundle {
	t.Helper()
	b := &testBundle{path: filepath.Join(t.TempDir(), "ledger.jsonl")}
	p, err := provider.New(b.path, c)
	require.NoError(t, err)
	server := httptest.NewServer(p)
	b.own, b.url = p, server.URL
	b.withClient(t)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		require.NoError(t, p.Close())
	})
	return b
}

func (b *testBundle) withClient(t *testing.T) {
	t.Helper()
	transport := &http.Transport{}
	b.client = &http.Client{Timeout: 10 * time.Second, Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
}

// keeper keeps a provider in a process of its own.
func (b *testBundle) keeper(t *testing.T, flags ...string) *provider.Keeper {
	t.Helper()
	b.path = filepath.Join(t.TempDir(), "ledger.jsonl")
	k, err := provider.Keep(func(addr string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], append([]string{"-addr", addr, "-ledger", b.path, "-attended"}, flags...)...) //nolint:gosec // this binary
		cmd.Env = append(os.Environ(), childEnv+"=1")
		cmd.Stderr = os.Stderr
		return cmd
	})
	require.NoError(t, err)
	t.Cleanup(k.Close)
	b.url = k.URL()
	b.withClient(t)
	return k
}

// reply is what a client gets.
type reply struct {
	status int
	body   string
	err    error
	header http.Header
}

func (b *testBundle) do(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.url+path, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, string(text), err, resp.Header}
}

// post asks for an invoice, under a key or without.
func (b *testBundle) post(t *testing.T, key, body string) reply {
	t.Helper()
	if key == "" {
		return b.do(t, http.MethodPost, "/invoices", body)
	}
	return b.do(t, http.MethodPost, "/keyed/invoices", body, "Idempotency-Key", key)
}

// exist asks how many invoices of a number there are.
func (b *testBundle) exist(t *testing.T, number string) int {
	t.Helper()
	r := b.do(t, http.MethodGet, "/invoices?number="+number, "")
	require.NoError(t, r.err)
	require.Equal(t, http.StatusOK, r.status, r.body)
	var receipts []provider.Receipt
	require.NoError(t, json.Unmarshal([]byte(r.body), &receipts))
	return len(receipts)
}

func (b *testBundle) counts(t *testing.T) provider.Counts {
	t.Helper()
	r := b.do(t, http.MethodGet, "/counts", "")
	require.NoError(t, r.err)
	var c provider.Counts
	require.NoError(t, json.Unmarshal([]byte(r.body), &c))
	return c
}

// inLedger counts the entries of a kind in the file.
func (b *testBundle) inLedger(t *testing.T, kind provider.Kind) (n int) {
	t.Helper()
	entries, err := provider.Read(b.path)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-deadline:
			require.FailNowf(t, "not reached", "%s", what)
		}
	}
}
