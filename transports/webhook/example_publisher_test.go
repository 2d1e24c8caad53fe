package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// An event is posted, signed, and confirmed by the answer. In a program the publisher is
// given to a relay: outbox.NewRelay(pool, publisher, outbox.RelayConfig{}).
func ExampleNewPublisher() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, _ := io.ReadAll(r.Body)
		fmt.Println(r.Header.Get("webhook-id"), r.Header.Get("message-type"), string(payload))
		w.WriteHeader(http.StatusNoContent)
	}))
	defer endpoint.Close()

	publisher, err := webhook.NewPublisher(endpoint.URL, "whsec_ZXhhbXBsZS1zZWNyZXQtZXhhbXBsZS1zZWNyZXQtMzI=", webhook.PublisherConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer publisher.CloseIdleConnections()
	errs := publisher.Publish(context.Background(), []*handler.Message{
		{ID: "01912d68-783e-7a03-8467-5661c1243ad4", Type: "order.paid", Key: []byte("42"), Payload: []byte(`{"id":42}`)},
	})
	fmt.Println(errs[0])
	// Output:
	// 01912d68-783e-7a03-8467-5661c1243ad4 order.paid {"id":42}
	// <nil>
}

// Whoever receives with this package knows the copies of an event by its id.
func ExamplePublisher() {
	const secret = "whsec_ZXhhbXBsZS1zZWNyZXQtZXhhbXBsZS1zZWNyZXQtMzI="
	hook, err := webhook.NewHandler(printer{}, webhook.StandardWebhooks(secret), webhook.Config{Endpoint: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	endpoint := httptest.NewServer(hook)
	defer endpoint.Close()
	publisher, err := webhook.NewPublisher(endpoint.URL, secret, webhook.PublisherConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer publisher.CloseIdleConnections()
	errs := publisher.Publish(context.Background(), []*handler.Message{
		{ID: "evt_1", Payload: []byte(`{"type":"order.paid","data":{"id":"42"}}`)},
	})
	fmt.Println(errs[0])
	// Output:
	// store shop:evt_1 order.paid 42
	// <nil>
}
