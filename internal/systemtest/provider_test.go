package systemtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/provider"
)

// providerEnv makes the test binary a provider.
const providerEnv = "SEMEL_SYSTEMTEST_PROVIDER"

func providerMain() int {
	if err := provider.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// callTimes are those of the calls of a test. Late work ends between them.
const (
	callTimeout = 300 * time.Millisecond
	callLate    = 600 * time.Millisecond
	callGrace   = 2 * time.Second

	// createInvoice is the step of the call.
	createInvoice = "create-invoice"
)

// invoicing is a consumer that makes an invoice for each message at a provider, which
// is another process.
type invoicing struct {
	*testBundle
	*provider.Keeper
	path string // of the provider's ledger
}

func setupInvoicing(t *testing.T, flags ...string) *invoicing {
	t.Helper()
	b := &invoicing{testBundle: setupDatabase(t), path: filepath.Join(t.TempDir(), "ledger.jsonl")}
	b.exec(t, `CREATE TABLE receipts (message text NOT NULL, invoice text NOT NULL)`)
	var err error
	b.Keeper, err = provider.Keep(func(addr string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], append([]string{"-addr", addr, "-ledger", b.path, "-attended"}, flags...)...) //nolint:gosec // this binary
		cmd.Env = append(os.Environ(), providerEnv+"=1")
		return cmd
	})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

// work makes and works the inbox, until it is empty.
func (b *invoicing) work(t *testing.T, client *provider.Client, o func(invoice provider.Invoice) calls.Options, msgs []*handler.Message) {
	t.Helper()
	ledger, err := calls.New(b.Pool, calls.Config{Schema: b.Schema, Grace: callGrace, Logger: b.log.logger()})
	require.NoError(t, err)
	prepare := func(ctx context.Context, msg *handler.Message) error {
		var invoice provider.Invoice
		if err := json.Unmarshal(msg.Payload, &invoice); err != nil {
			return handler.Permanent(err)
		}
		_, err := ledger.Do(ctx, msg, createInvoice, func(ctx context.Context, key string) ([]byte, error) {
			return client.Create(ctx, key, invoice)
		}, o(invoice))
		return err
	}
	note := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		result, err := ledger.Result(ctx, tx, msg, createInvoice)
		var receipt provider.Receipt
		if err == nil {
			err = json.Unmarshal(result, &receipt)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO receipts (message, invoice) VALUES ($1, $2)`, msg.ID, receipt.ID)
		}
		return err
	}
	in := b.inbox(t, b.Pool, note, inbox.Config{
		Prepare: prepare,
		Retry:   inbox.Retry{Attempts: 50, Delay: 5 * time.Millisecond, MaxDelay: 100 * time.Millisecond},
	})
	_, err = in.StoreAll(t.Context(), msgs)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- in.Work(ctx) }()
	defer func() {
		stop()
		require.NoError(t, <-done)
	}()
	await(t, "an empty inbox", func() bool {
		var n int
		require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM inbox_messages`).Scan(&n))
		return n == 0
	})
}

// receipts returns which invoices each message made, as its handler noted.
func (b *invoicing) receipts(t *testing.T) map[string][]string {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT message, invoice FROM receipts`)
	require.NoError(t, err)
	noted := map[string][]string{}
	var message, invoice string
	_, err = pgx.ForEachRow(rows, []any{&message, &invoice}, func() error {
		noted[message] = append(noted[message], invoice)
		return nil
	})
	require.NoError(t, err)
	return noted
}

// A provider times out when it has done the work, resets connections, answers twice,
// and dies. Whoever calls again without knowing makes a second invoice; whoever does
// not, maybe none. Here all of it happens once to a provider that is a process with a
// ledger of its own: one that remembers idempotency keys, one that does not and can be
// asked, and one that is asked before anything is sent. Every message has one invoice
// there, and its row here says which, though more calls were made than there are
// invoices. TestChaos_Calls kills the clients, too.
func TestProvider_EveryFaultOnce(t *testing.T) {
	t.Parallel()

	find := func(c *provider.Client, number string) func(context.Context, calls.Call) ([]byte, calls.Answer, error) {
		return func(ctx context.Context, _ calls.Call) ([]byte, calls.Answer, error) {
			receipt, found, err := c.Find(ctx, number)
			switch {
			case err != nil:
				return nil, calls.Unclear, err
			case found:
				return receipt, calls.Yes, nil
			}
			return nil, calls.No, nil
		}
	}
	tests := []struct {
		name    string
		keyed   bool
		options calls.Options
	}{
		{name: "Keys", keyed: true, options: calls.Options{Timeout: callTimeout}},
		{name: "Asked", options: calls.Options{Timeout: callTimeout, KeyTTL: -1}},
		{name: "AskedFirst", options: calls.Options{Timeout: callTimeout, KeyTTL: -1, AskFirst: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			const n = 20
			var script []string
			for _, fault := range provider.AllFaults() {
				script = append(script, string(fault))
			}
			b := setupInvoicing(t, "-script", strings.Join(script, ","), "-late-by", callLate.String(), "-patience", "1.5s")
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := &provider.Client{URL: b.URL(), Keyed: tt.keyed, HTTP: &http.Client{Transport: transport}}
			msgs := make([]*handler.Message, n)
			for i := range msgs {
				msgs[i] = &handler.Message{ID: fmt.Sprint("order-", i), Payload: fmt.Appendf(nil, `{"number":"I-%d"}`, i)}
			}

			b.work(t, client, func(invoice provider.Invoice) calls.Options {
				o := tt.options
				if !tt.keyed {
					o.WasItDone = find(client, invoice.Number)
				}
				return o
			}, msgs)
			b.Close() // what is late is done now

			entries, err := provider.Read(b.path)
			require.NoError(t, err)
			invoices, faults, called := map[string][]string{}, map[provider.Fault]int{}, 0
			for _, e := range entries {
				switch e.Kind {
				case provider.Called:
					called++
					faults[e.Fault]++
				case provider.Made:
					id := "order-" + strings.TrimPrefix(e.Number, "I-")
					invoices[id] = append(invoices[id], e.ID)
				}
			}
			for _, fault := range provider.AllFaults() {
				require.Equal(t, 1, faults[fault], fault)
			}
			require.Equal(t, 1, b.Deaths())
			require.Len(t, invoices, n)
			for id, made := range invoices {
				require.Len(t, made, 1, "invoices of %s", id)
			}
			require.Greater(t, called, n, "calls")
			require.Equal(t, invoices, b.receipts(t))
			require.Empty(t, b.allLetters(t))
		})
	}
}
