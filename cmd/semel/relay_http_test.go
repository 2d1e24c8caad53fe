package main_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/webhook"
)

var (
	signingSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("example-secret-example-secret-32"))
	anotherSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("another-secret-another-secret-32"))
)

// receiver is an endpoint that knows who signs.
type receiver struct {
	*httptest.Server
	before func(w http.ResponseWriter, r *http.Request) bool // reports whether it has answered; nil: never

	mu       sync.Mutex // guards the fields below
	ids      []string   // of all that came, in order, whatever was answered
	accepted []*handler.Message
}

func newReceiver(t *testing.T, secret string, before func(http.ResponseWriter, *http.Request) bool) *receiver {
	t.Helper()
	e := &receiver{before: before}
	hook, err := webhook.NewHandler(nil, webhook.StandardWebhooks(secret), webhook.Config{
		Timeout: deadline, ReadTimeout: deadline / 2, Headers: []string{"message-key", "message-version"},
		Logger: slog.New(slog.DiscardHandler),
		Accept: func(_ context.Context, msg *handler.Message) (handler.Outcome, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.accepted = append(e.accepted, msg)
			return handler.Processed, nil
		},
	})
	require.NoError(t, err)
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.ids = append(e.ids, r.Header.Get("message-key")+" "+r.Header.Get("webhook-id"))
		e.mu.Unlock()
		if e.before == nil || !e.before(w, r) {
			hook.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// came counts the requests for each event of an aggregate, by id.
func (e *receiver) came(aggregate string) map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	times := map[string]int{}
	for _, text := range e.ids {
		if key, id, _ := strings.Cut(text, " "); key == aggregate {
			times[id]++
		}
	}
	return times
}

func (e *receiver) taken() []*handler.Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*handler.Message(nil), e.accepted...)
}

// versions are those that were taken of an aggregate, in order.
func (e *receiver) versions(aggregate string) (versions []string) {
	for _, msg := range e.taken() {
		if key, _ := msg.Headers.First("message-key"); string(key) == aggregate {
			version, _ := msg.Headers.First("message-version")
			versions = append(versions, string(version))
		}
	}
	return versions
}

// writeEach writes n events of each aggregate.
func writeEach(t *testing.T, db *pgtest.DB, n int, aggregates ...string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		var events []outbox.Event
		for version := range n {
			for _, id := range aggregates {
				events = append(events, outbox.Event{AggregateType: "order", AggregateID: id, Type: "order.changed", Version: int64(version + 1), Payload: []byte(`{"amount":1999}`)})
			}
		}
		return outbox.NewWriter(db.Schema).Write(t.Context(), tx, events...)
	}))
}

// stateOf is what became of an aggregate's events, in order.
func stateOf(t *testing.T, db *pgtest.DB, aggregate string) (states string) {
	t.Helper()
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(state, ' ' ORDER BY seq), '') FROM events WHERE aggregateid = $1`, aggregate).Scan(&states))
	return states
}

func errorOf(t *testing.T, db *pgtest.DB, aggregate string) (text string) {
	t.Helper()
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT coalesce(max(last_error), '') FROM outbox WHERE aggregateid = $1`, aggregate).Scan(&text))
	return text
}

// Each event once and in the order of its aggregate, over two runs that end well.
func TestRelay_HTTP(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	e := newReceiver(t, signingSecret, func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Set("Content-Type", "application/json") // the payloads are none, and are said to be none
		return false
	})

	publishInTwoRuns(t, db, []string{"WEBHOOK_SECRET=" + anotherSecret + " " + signingSecret}, "-http", e.URL, "-batch", "7", "-http-at-once", "5", "-http-timeout", "24s")

	var payloads []string
	ids := map[string]bool{}
	for _, msg := range e.taken() {
		payloads = append(payloads, string(msg.Payload))
		ids[msg.ID] = true
	}
	requireRelayed(t, payloads)
	require.Len(t, ids, relayedEvents)
}

// mending is what a test closes when the endpoint is to do its part.
type mending chan struct{}

func (m mending) done() bool {
	select {
	case <-m:
		return true
	default:
		return false
	}
}

func published(n int) string { return strings.TrimSpace(strings.Repeat("published ", n)) }

func oneTo(n int) (versions []string) {
	for version := range n {
		versions = append(versions, fmt.Sprint(version+1))
	}
	return versions
}

// An endpoint that fails at one aggregate, redirects another, refuses an event of a
// third, and answers a fourth in HTML: the others are published meanwhile, each event
// once and in order; and what failed goes on in order when that is mended.
func TestRelay_HTTP_Failing(t *testing.T) {
	t.Parallel()

	elsewhere := newReceiver(t, signingSecret, nil)
	db := pgtest.New(t)
	mended := make(mending)
	e := newReceiver(t, signingSecret, func(w http.ResponseWriter, r *http.Request) bool {
		second := r.Header.Get("message-version") == "2"
		switch key := r.Header.Get("message-key"); {
		case key == "fails" && !mended.done():
			http.Error(w, "<html>1999</html>", http.StatusInternalServerError)
		case key == "redirects":
			http.Redirect(w, r, elsewhere.URL+"/login?token=hunter2", http.StatusTemporaryRedirect)
		case key == "refused" && second:
			w.WriteHeader(http.StatusUnprocessableEntity)
		case key == "html":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>welcome</html>")
		default:
			return false
		}
		return true
	})
	good := []string{"a", "b", "c"}
	const each = 10
	writeEach(t, db, 3, "fails", "redirects", "refused", "html")
	writeEach(t, db, each, good...)

	address := strings.Replace(e.URL, "http://", "http://user:hunter2@", 1) + "/?token=hunter2"
	p := startRelay(t, db, []string{"WEBHOOK_URL=" + address, "WEBHOOK_SECRET=" + signingSecret}, "-http-timeout", "24s")

	for aggregate, want := range map[string]string{
		"a": published(each), "b": published(each), "c": published(each), "html": published(3),
		"redirects": "quarantined pending pending", "refused": "published quarantined pending",
	} {
		require.Eventually(t, func() bool { return stateOf(t, db, aggregate) == want }, deadline, 10*time.Millisecond, "%s\n%s", aggregate, p.stderr)
	}
	for aggregate, want := range map[string]string{
		"fails": "/: status 500 Internal Server Error", "refused": "/: status 422",
		"redirects": `it leads to "` + elsewhere.URL + `/login", and redirects are not followed`,
	} {
		require.Eventually(t, func() bool { return strings.Contains(errorOf(t, db, aggregate), want) }, deadline, 10*time.Millisecond, "%s\n%s", want, p.stderr)
		require.NotContains(t, errorOf(t, db, aggregate), "hunter2")
	}
	require.Len(t, e.came("fails"), 1, "what follows it waits")

	close(mended)
	require.Eventually(t, func() bool { return stateOf(t, db, "fails") == published(3) }, deadline, 10*time.Millisecond, p.stderr)
	p.stop(t, syscall.SIGTERM)
	require.Equal(t, oneTo(3), e.versions("fails"))
	for _, aggregate := range good {
		require.Equal(t, oneTo(each), e.versions(aggregate))
	}
	for _, aggregate := range append(good, "html") {
		for id, times := range e.came(aggregate) {
			require.Equal(t, 1, times, "%s %s", aggregate, id)
		}
	}
	require.Empty(t, elsewhere.taken())
	for _, secret := range []string{"hunter2", signingSecret, "1999", "welcome"} {
		require.NotContains(t, p.stderr.String(), secret)
	}
}

// An endpoint that never answers for one aggregate: that is a failed attempt of its
// event, also while nothing else is to do, and the others are published meanwhile.
func TestRelay_HTTP_Hangs(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	mended := make(mending)
	e := newReceiver(t, signingSecret, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("message-key") != "hangs" || mended.done() {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-mended:
		}
		panic(http.ErrAbortHandler)
	})
	writeEach(t, db, 3, "hangs")
	p := startRelay(t, db, []string{"WEBHOOK_SECRET=" + signingSecret}, "-http", e.URL, "-http-timeout", "2s")
	require.Eventually(t, func() bool { return strings.Contains(errorOf(t, db, "hangs"), ": no whole answer in ") }, deadline, 10*time.Millisecond, p.stderr)

	writeEach(t, db, 10, "a", "b")
	for _, aggregate := range []string{"a", "b"} {
		require.Eventually(t, func() bool { return stateOf(t, db, aggregate) == published(10) }, deadline, 10*time.Millisecond, p.stderr)
	}
	require.Len(t, e.came("hangs"), 1, "what follows it waits")

	close(mended)
	require.Eventually(t, func() bool { return stateOf(t, db, "hangs") == published(3) }, deadline, 10*time.Millisecond, p.stderr)
	p.stop(t, syscall.SIGTERM)
}

// A relay is killed while the endpoint has an event and did not answer yet. The next
// one sends that event again, under the same id, before what follows it, and nothing of
// what was noted.
func TestRelay_HTTP_Killed(t *testing.T) {
	t.Parallel()

	killed := make(mending)
	e := newReceiver(t, signingSecret, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("message-key") == "held" && r.Header.Get("message-version") == "2" && !killed.done() {
			<-killed
			panic(http.ErrAbortHandler)
		}
		return false
	})
	db := pgtest.New(t)
	writeEach(t, db, 3, "held")
	writeEach(t, db, 10, "a", "b")
	env := []string{"WEBHOOK_SECRET=" + signingSecret}
	first := startRelay(t, db, env, "-http", e.URL, "-lease", "10s")
	require.Eventually(t, func() bool { return waiting(t, db) == 2 && len(e.came("held")) == 2 }, deadline, time.Millisecond, first.stderr)
	require.NoError(t, first.cmd.Process.Kill())
	<-first.ended
	before := [][]string{e.versions("a"), e.versions("b")}
	close(killed)

	second := startRelay(t, db, env, "-http", e.URL, "-http-timeout", "24s")
	require.Eventually(t, func() bool { return waiting(t, db) == 0 }, deadline, 10*time.Millisecond, second.stderr)
	second.stop(t, syscall.SIGTERM)

	require.Equal(t, before, [][]string{e.versions("a"), e.versions("b")}, "what was noted is not sent again")
	require.Len(t, e.came("held"), 3, "no event has two ids")
	require.Equal(t, oneTo(3), e.versions("held"))
}

// The secret was changed on the other side. A few events are in quarantine, the others
// wait, and go out when the relay has the new one.
func TestRelay_HTTP_SecretChanged(t *testing.T) {
	t.Parallel()

	e := newReceiver(t, signingSecret, nil)
	db := pgtest.New(t)
	var aggregates []string
	for n := range 30 {
		aggregates = append(aggregates, fmt.Sprint(n))
	}
	writeEach(t, db, 1, aggregates...)
	counts := func() (quarantined, sent int) {
		require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE state = 'quarantined'), count(*) FILTER (WHERE state = 'published') FROM events`).Scan(&quarantined, &sent))
		return quarantined, sent
	}

	wrong := startRelay(t, db, []string{"WEBHOOK_SECRET=" + anotherSecret}, "-http", e.URL)
	require.Eventually(t, func() bool {
		return strings.Contains(wrong.stderr.String(), "our credentials are refused, somebody must look at them")
	}, deadline, 10*time.Millisecond, wrong.stderr)
	wrong.stop(t, syscall.SIGTERM)
	quarantined, sent := counts()
	require.LessOrEqual(t, quarantined, 4)
	require.Zero(t, sent)

	right := startRelay(t, db, []string{"WEBHOOK_SECRET=" + signingSecret}, "-http", e.URL)
	require.Eventually(t, func() bool {
		_, sent := counts()
		return sent == len(aggregates)-quarantined
	}, deadline, 10*time.Millisecond, right.stderr)
	right.stop(t, syscall.SIGTERM)
}
