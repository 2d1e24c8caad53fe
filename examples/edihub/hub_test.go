package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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

// brokenStore is the claim-check store, while err is nil.
type brokenStore struct {
	outbox.ArchiveStore
	err atomic.Pointer[error]
}

func (s *brokenStore) Create(ctx context.Context, name string, data []byte, retainUntil time.Time) error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return s.ArchiveStore.Create(ctx, name, data, retainUntil)
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

// Other content under a Message-ID is not the message, and not nothing: it is in
// front of a person, with a claim check that redeems it.
func TestHub_Mismatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.post(request(invoic))

	w := b.post(request(una))

	requireRefusal(t, w, as2.UnexpectedError, "another content came under this Message-ID before")
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.outbox`))
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.dead_letters WHERE reason = 'mismatch' AND convert_from(payload, 'UTF8') LIKE '%' || $1 || '%'`, objectName([]byte(una))))
	require.Equal(t, 2, b.kept(t))
	require.Equal(t, first.Body.String(), b.post(request(invoic)).Body.String(), "the first one's MDN is as it was")
	require.Equal(t, http.StatusConflict, b.post(request(una, "Disposition-Notification-To", "")).Code)
}

func requireRefusal(t *testing.T, w *httptest.ResponseRecorder, want as2.Disposition, says string) {
	t.Helper()
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	receipt, err := as2.ReadReceipt(w.Header().Get("Content-Type"), w.Body.Bytes())
	require.NoError(t, err, "%s", w.Body)
	require.Equal(t, want, receipt.Disposition)
	require.Contains(t, receipt.Text, says)
	require.Empty(t, receipt.MIC)
}

// Bad input is refused with a reason and leaves nothing behind; the same post gets
// the same refusal, without an MDN by the status.
func TestHub_Refuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tests := []struct {
		name    string
		body    string
		changes []string
		want    as2.Disposition
		says    string
	}{
		{name: "Empty", body: "", want: as2.UnexpectedError, says: "it is empty"},
		{name: "EmptyInterchange", body: "UNB+UNOA:3+A+B+260105:1434+77'UNZ+0+77'", want: as2.UnexpectedError, says: "segment 2 (UNZ), byte 30: there is no message"},
		{name: "TwoInterchanges", body: invoic + una, want: as2.UnexpectedError, says: "a second interchange"},
		{name: "TwoOfAKind", body: invoic + invoic, want: as2.UnexpectedError, says: "a second interchange"},
		{name: "MessageCount", body: strings.Replace(invoic, "UNZ+1", "UNZ+2", 1), want: as2.UnexpectedError, says: "segment 22 (UNZ), element 1"},
		{name: "BreaksOff", body: invoic[:200], want: as2.UnexpectedError, says: "breaks off"},
		{name: "JSON", body: `{"invoice": 1}`, want: as2.UnexpectedError, says: "segment 1"},
		{name: "UnknownPartner", changes: []string{"AS2-From", "widget works"}, says: "must be in quotes"},
		{name: "OtherCase", changes: []string{"AS2-From", `"widget works"`}, want: as2.AuthenticationFailed, says: `nobody of that name`},
		{name: "ForAnother", changes: []string{"AS2-To", "HUB"}, want: as2.UnexpectedError, says: `AS2-To is "HUB"`},
		{name: "XML", changes: []string{"Content-Type", "application/xml"}, want: as2.UnexpectedError, says: "send application/edifact"},
		{name: "Encrypted", changes: []string{"Content-Type", "application/pkcs7-mime"}, want: as2.DecryptionFailed, says: "not read here"},
		{name: "SignatureRequired", changes: []string{"Disposition-Notification-Options", "signed-receipt-protocol=required, pkcs7-signature"}, want: as2.UnsupportedFormat, says: "MDNs are not signed here"},
		{name: "NoMessageID", changes: []string{"Message-ID", ""}, says: "read header Message-ID: it is empty or missing"},
		{name: "NoNames", changes: []string{"AS2-To", ""}, says: "read header AS2-To"},
		{name: "ToAnAddress", changes: []string{"Receipt-Delivery-Option", "http://widget.example/mdn"}, says: "requested to an address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := tt.body
			if body == "" && tt.changes != nil {
				body = invoic
			}

			w := b.post(request(body, tt.changes...))

			if tt.want == "" {
				require.Equal(t, http.StatusBadRequest, w.Code)
				require.Contains(t, w.Body.String(), tt.says)
			} else {
				requireRefusal(t, w, tt.want, tt.says)
				require.Equal(t, w.Body.String(), b.post(request(body, tt.changes...)).Body.String())
				plain := b.post(request(body, append(tt.changes, "Disposition-Notification-To", "")...))
				require.Equal(t, http.StatusUnprocessableEntity, plain.Code)
				require.Contains(t, plain.Body.String(), tt.says)
			}
			b.requireNothing(t)
			require.Zero(t, b.kept(t))
		})
	}
}

func TestHub_Body(t *testing.T) {
	t.Parallel()
	b := setup(t)

	w := b.post(request(strings.Repeat("x", maxBody+1)))
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Contains(t, w.Body.String(), "more than 8388608 bytes")

	r := request("")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(invoic[:50]), iotestErrReader{}))
	w = b.post(r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "did not come to its end")

	r = request("", "AS2-From", "stranger")
	r.Body = io.NopCloser(iotestErrReader{})
	requireRefusal(t, b.post(r), as2.AuthenticationFailed, "nobody of that name") // and no byte was read

	b.requireNothing(t)
	require.Zero(t, b.kept(t))
}

// iotestErrReader is the rest of a body that does not come.
type iotestErrReader struct{}

func (iotestErrReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

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

// The claim-check store is full, or read-only. Nothing is journaled and
// nothing acknowledged: the partner is told to come again, and is taken when the
// store is well.
func TestHub_StoreFails(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"Full": syscall.ENOSPC, "ReadOnly": syscall.EROFS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			wrapped := fmt.Errorf("write: %w", &fs.PathError{Op: "write", Path: b.claims, Err: err})
			b.store.err.Store(&wrapped)

			w := b.post(request(invoic))

			b.requireComeAgain(t, w)
			b.store.err.Store(nil)
			require.Equal(t, http.StatusOK, b.post(request(invoic)).Code)
			require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.outbox`))
		})
	}
}

// A folder that is gone is not made anew: it may be a disk that is not mounted.
func TestHub_StoreGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, os.Remove(b.claims))

	w := b.post(request(invoic))

	b.requireComeAgain(t, w)
	require.NoError(t, os.Mkdir(b.claims, 0o700))
	require.Equal(t, http.StatusOK, b.post(request(invoic)).Code)
}

func (b *testBundle) requireComeAgain(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.NotContains(t, w.Header().Get("Content-Type"), "report")
	require.NotContains(t, w.Body.String(), b.claims, "a stranger's business it is not")
	b.requireNothing(t)
}

// The row, the event or the MDN cannot be written. None of them is, and no
// MDN leaves; the message waits in the inbox, is journaled from there, and whoever
// asks again has its MDN.
func TestHub_JournalFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `ALTER TABLE semel.outbox RENAME TO outbox_away`) // the event comes after the row

	w := b.post(request(invoic))

	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Zero(t, b.Number(t, `SELECT count(*) FROM interchanges`))

	b.Exec(t, `ALTER TABLE semel.outbox_away RENAME TO outbox`)
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- b.hub.inbox.Work(ctx) }()
	require.Eventually(t, func() bool { return b.post(request(invoic)).Code == http.StatusOK }, time.Minute, 20*time.Millisecond)
	stop()
	require.NoError(t, <-worked)
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM interchanges`))
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.outbox`))
}
