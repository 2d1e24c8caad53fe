package httpbreaker_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/handler"
)

// A connection that is used again dies when the request has arrived: net/http sends
// a POST with an idempotency key once more by itself, behind the ledger's back. A
// plain transport is the control: it must show what we stop.
func TestResend_DeadReusedConnection(t *testing.T) {
	t.Parallel()

	for _, key := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		for _, body := range []string{"payload", ""} {
			for _, plain := range []bool{true, false} {
				t.Run(strings.Join([]string{key, body, map[bool]string{true: "Plain", false: "Ours"}[plain]}, "/"), func(t *testing.T) {
					t.Parallel()

					var seen, accepted atomic.Int64
					url := listen(t, func(conn net.Conn) {
						first := accepted.Add(1) == 1
						requests := bufio.NewReader(conn)
						for n := 1; ; n++ {
							req, err := http.ReadRequest(requests)
							if err != nil {
								return
							}
							_, _ = io.Copy(io.Discard, req.Body)
							if req.Header.Get(key) == "k1" {
								seen.Add(1)
							}
							if first && n == 2 {
								return // the work is done, the answer is lost
							}
							_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
						}
					})
					b := setupURL(t, url, httpbreaker.Config{})
					if plain {
						base := &http.Transport{}
						t.Cleanup(base.CloseIdleConnections)
						b.client = &http.Client{Transport: base}
					}
					require.NoError(t, b.post(t))
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
					require.NoError(t, err)
					req.Header.Set(key, "k1")
					err = b.do(req)

					require.Equal(t, "k1", req.Header.Get(key), "the caller's request is untouched")
					if plain {
						require.NoError(t, err)
						require.EqualValues(t, 2, seen.Load())
						return
					}
					require.True(t, handler.IsUnavailable(err))
					require.False(t, isNotSent(err), "it was sent")
					require.EqualValues(t, 1, seen.Load())
				})
			}
		}
	}
}
