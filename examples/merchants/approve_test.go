package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask sends an approval, as a reviewer does, and returns the status.
func ask(t *testing.T, b *testBundle, merchant, seen string) int {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/merchants/"+merchant+"/approval", nil)
	req.Header.Set("If-Match", seen)
	w := httptest.NewRecorder()
	newEndpoint(b.approvals).ServeHTTP(w, req)
	return w.Code
}

const countEvents = `
	SELECT count(*)
	FROM semel.outbox
	WHERE aggregatetype = 'merchant' AND aggregateid = 'merchant:mer_00001' AND type = 'merchant.approved' AND version = 2`

func TestEndpoint(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		seen     string
		before   string // SQL
		twice    bool
		status   int
		events   int
		approved int
	}{
		{name: "Approves", seen: `"1"`, status: http.StatusCreated, events: 1, approved: 1},
		{name: "SecondChangesNothing", seen: `"1"`, twice: true, status: http.StatusOK, events: 1, approved: 1},
		{name: "Changed", seen: `"1"`, before: `UPDATE merchants SET sequence = 5`, status: http.StatusPreconditionFailed},
		{name: "NotSeen", seen: ``, status: http.StatusPreconditionRequired},
		{name: "Unknown", seen: `"1"`, before: `DELETE FROM merchants`, status: http.StatusNotFound},
		{name: "AccountTaken", seen: `"1"`, before: `INSERT INTO payout_accounts SELECT iban, 'mer_9' FROM merchants`, status: http.StatusConflict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			_, err := submit(t.Context(), b.Pool, 1)
			require.NoError(t, err)
			b.Exec(t, tt.before)
			if tt.twice {
				require.Equal(t, http.StatusCreated, ask(t, b, "mer_00001", tt.seen))
			}

			status := ask(t, b, "mer_00001", tt.seen)

			require.Equal(t, tt.status, status)
			require.Equal(t, tt.events, b.Number(t, countEvents))
			require.Equal(t, tt.events, b.Number(t, `SELECT count(*) FROM semel.outbox`))
			require.Equal(t, tt.approved, b.Number(t, `SELECT count(*) FROM merchants WHERE status = 'approved'`))
			require.Equal(t, tt.events, b.woken, "relays are woken after a commit, and only then")
		})
	}
}
