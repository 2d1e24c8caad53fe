package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/as2"
	"github.com/semel-go/semel/examples/internal/programtest"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
)

// testBundle is a hub in a schema of its own, with one partner.
type testBundle struct {
	programtest.Schema
	hub    *hub
	claims string // folder
	store  *brokenStore
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{Schema: program.Schema(t, tablesSQL), claims: t.TempDir()}
	b.store = &brokenStore{ArchiveStore: outbox.DirectoryArchive(b.claims)}
	b.Exec(t, `INSERT INTO partners (as2_name) VALUES ($1)`, widget)
	b.hub = &hub{
		pool: b.Pool, claims: claims{store: b.store, base: fileURL(b.claims)}, logger: slog.New(slog.DiscardHandler),
		responder: as2.Responder{ReportingUA: "test", Domain: "test.example"},
	}
	j := journal{events: outbox.NewWriter(b.Name), responder: b.hub.responder}
	var err error
	b.hub.inbox, err = inbox.New(b.Pool, edihub, handler.JSON(j.take), inbox.Config{
		Schema: b.Name, QuickDelay: time.Millisecond, Retry: inbox.Retry{Delay: time.Millisecond, MaxDelay: 10 * time.Millisecond},
		Logger: b.hub.logger,
	})
	require.NoError(t, err)
	return b
}

// request is a post that nothing is wrong with.
func request(body string, changes ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/as2", strings.NewReader(body)) //nolint:noctx // nobody cancels it
	for _, kv := range [][2]string{
		{"AS2-From", as2.FormatName(widget)},
		{"AS2-To", as2.FormatName(hubName)},
		{"Message-ID", "<1@widget.example>"},
		{"Content-Type", "application/edifact"},
		{"Disposition-Notification-To", "edi@widget.example"},
	} {
		r.Header.Set(kv[0], kv[1])
	}
	for i := 0; i < len(changes); i += 2 {
		if r.Header.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			r.Header.Del(changes[i])
		}
	}
	return r
}

func (b *testBundle) post(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.hub.ServeHTTP(w, r)
	return w
}

// requireNothing asserts that nothing is journaled, told to others, or kept.
func (b *testBundle) requireNothing(t *testing.T) {
	t.Helper()
	require.Zero(t, b.Number(t, `SELECT (SELECT count(*) FROM interchanges) + (SELECT count(*) FROM semel.outbox)`))
}

func (b *testBundle) kept(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(b.claims, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	}))
	return n
}

func TestHub(t *testing.T) {
	t.Parallel()
	b := setup(t)

	w := b.post(request(invoic))

	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	receipt, err := as2.ReadReceipt(w.Header().Get("Content-Type"), w.Body.Bytes())
	require.NoError(t, err)
	require.Equal(t, as2.Processed, receipt.Disposition)
	require.Equal(t, as2.MIC("sha-256", []byte(invoic)), receipt.MIC)
	require.Equal(t, []string{`"Widget Works" 1@widget.example`}, b.Texts(t, `SELECT id FROM interchanges`))
	require.Equal(t, []string{`"Widget Works" 1@widget.example`}, b.Texts(t, `SELECT correlation_id FROM semel.outbox`))
	require.Equal(t, []string{w.Header().Get("Date")}, b.Texts(t, `SELECT to_char(received_at AT TIME ZONE 'UTC', 'Dy, DD Mon YYYY HH24:MI:SS "GMT"') FROM interchanges`))
	check := b.hub.claims.base + "/" + objectName([]byte(invoic))
	require.Equal(t, []string{fmt.Sprintf(`{"unbRef":"00000000000778","sender":"4012345000009","recipient":"4098765000006","raw":%q}`, check)},
		b.Texts(t, `SELECT convert_from(payload, 'UTF8') FROM semel.outbox WHERE type = 'EdiMessageReceived'`))
	raw, err := b.hub.claims.redeem(t.Context(), check)
	require.NoError(t, err)
	require.Equal(t, invoic, string(raw))
}

// A partner that got no MDN sends the message again, while the first copy
// is still under way or hours later; each copy gets the same bytes, headers too, and
// there is one event.
func TestHub_Again(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const copies = 6
	answers := make([]*httptest.ResponseRecorder, copies)
	var posts sync.WaitGroup
	for i := range answers {
		posts.Go(func() { answers[i] = b.post(request(invoic)) })
	}
	posts.Wait()
	// As another process of the sender may write it.
	last := b.post(request(invoic, "Message-ID", "1@widget.example", "Disposition-Notification-Options", "signed-receipt-micalg=optional, sha-512"))

	for _, w := range append(answers, last) {
		require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
		require.Equal(t, answers[0].Body.String(), w.Body.String())
		require.Equal(t, answers[0].Header(), w.Header())
	}
	require.NotEmpty(t, last.Header().Get("Date"))
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM interchanges`))
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.outbox`))
	require.Equal(t, 1, b.kept(t))
}

// The same Message-ID from another partner is another message.
func TestHub_OtherPartner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `INSERT INTO partners (as2_name) VALUES ('other')`)

	require.Equal(t, http.StatusOK, b.post(request(invoic)).Code)
	require.Equal(t, http.StatusOK, b.post(request(una, "AS2-From", "other")).Code)

	require.Equal(t, 2, b.Number(t, `SELECT count(*) FROM semel.outbox`))
}

// What is wrong within a message is not the hub's to judge.
func TestHub_TakesWhatItDoesNotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, body := range []string{
		strings.Replace(invoic, "UNT+20", "UNT+21", 1),
		strings.Replace(invoic, "1020", "1020A", 1),
		strings.Replace(invoic, "INVOIC", "ORDERS", 1),
	} {
		w := b.post(request(body, "Message-ID", fmt.Sprint(i)))
		require.Contains(t, w.Body.String(), "MDN-sent-automatically; processed\r\n")
	}
	require.Equal(t, 3, b.Number(t, `SELECT count(*) FROM semel.outbox`))
}

// Who wants no MDN gets none, and is journaled all the same.
func TestHub_WithoutMDN(t *testing.T) {
	t.Parallel()
	b := setup(t)

	w := b.post(request(invoic, "Disposition-Notification-To", ""))

	require.Equal(t, http.StatusOK, w.Code)
	require.Empty(t, w.Body.Bytes())
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM interchanges`))
}

// Long names and ids are remembered by their hash, and two of them are two.
func TestHub_LongMessageID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("i", 900)

	for _, id := range []string{long + "1", long + "2", long + "1"} {
		require.Equal(t, http.StatusOK, b.post(request(invoic, "Message-ID", "<"+id+">")).Code)
	}

	require.Equal(t, 2, b.Number(t, `SELECT count(*) FROM interchanges`))
}
