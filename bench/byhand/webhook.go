package byhand

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// WebhookTable is where callbacks wait to be handled: the narrowest row, and an index
// of those that wait.
const WebhookTable = `
CREATE TABLE callbacks (
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    handled_at  timestamptz,
    id          text        NOT NULL PRIMARY KEY,
    type        text        NOT NULL,
    payload     bytea       NOT NULL
);
CREATE INDEX callbacks_received_at_idx ON callbacks (received_at) WHERE handled_at IS NULL`

// StoreWebhook is its one statement.
const StoreWebhook = `INSERT INTO callbacks (id, type, payload) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

// Webhook receives Stripe's events. It verifies them with the same hash and tolerance as
// ours and stores them in one INSERT. It does less than we do: it compares no payloads
// under one id, keeps no headers, takes one secret, and waits for slow bodies and a slow
// database as long as the server lets it.
type Webhook struct {
	Pool   *pgxpool.Pool
	Secret []byte
}

// ServeHTTP implements [http.Handler].
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !h.verify(r.Header.Get("Stripe-Signature"), body) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var event struct{ ID, Type string }
	if err := json.Unmarshal(body, &event); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, err := h.Pool.Exec(r.Context(), StoreWebhook, event.ID, event.Type, body); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (h *Webhook) verify(header string, body []byte) bool {
	var at, signature string
	for part := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "t":
			at = value
		case "v1":
			signature = value
		}
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	got, err := hex.DecodeString(signature)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, h.Secret)
	mac.Write([]byte(at))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return hmac.Equal(mac.Sum(nil), got)
}
