package doctor_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/doctor"
	"github.com/semel-go/semel/internal/services"
)

// send declares something by the management API.
func send(t *testing.T, base, path string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, base+path, bytes.NewReader(text))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Less(t, response.StatusCode, 300, path)
}

// On the real RabbitMQ: what arguments and policies come to, and names that must
// be escaped.
func TestManagement(t *testing.T) {
	t.Parallel()

	type arguments = map[string]any
	base := services.NewManagedRabbitMQNode(t).Management
	send(t, base, "/api/vhosts/shop%2Feu", arguments{})
	send(t, base, "/api/permissions/shop%2Feu/guest", arguments{"configure": ".*", "write": ".*", "read": ".*"})
	send(t, base, "/api/policies/shop%2Feu/limits", arguments{
		"pattern": "^ruled", "apply-to": "queues", "definition": arguments{"message-ttl": 60000, "delivery-limit": 7, "dead-letter-exchange": "dead"},
	})
	send(t, base, "/api/operator-policies/shop%2Feu/cap", arguments{
		"pattern": "capped$", "apply-to": "queues", "definition": arguments{"message-ttl": 5000},
	})
	tests := []struct {
		name      string
		arguments arguments
		want      doctor.Queue
	}{
		{name: "plain", want: doctor.Queue{Type: "classic", TTL: -1, DeliveryLimit: -1}},
		{name: "a/b c%", arguments: arguments{"x-message-ttl": 3600000, "x-dead-letter-exchange": ""}, want: doctor.Queue{Type: "classic", TTL: time.Hour, DeliveryLimit: -1, DeadLetters: true}},
		{name: "quorum", arguments: arguments{"x-queue-type": "quorum"}, want: doctor.Queue{Type: "quorum", TTL: -1, DeliveryLimit: -1}},
		{name: "limited", arguments: arguments{"x-queue-type": "quorum", "x-delivery-limit": 3}, want: doctor.Queue{Type: "quorum", TTL: -1, DeliveryLimit: 3}},
		{name: "ruled", arguments: arguments{"x-queue-type": "quorum"}, want: doctor.Queue{Type: "quorum", TTL: time.Minute, DeliveryLimit: 7, DeadLetters: true}},
		{name: "ruled-and-limited", arguments: arguments{"x-queue-type": "quorum", "x-delivery-limit": 3}, want: doctor.Queue{Type: "quorum", TTL: time.Minute, DeliveryLimit: 3, DeadLetters: true}},
		// The broker applies no policy to a queue that does not know all of it.
		{name: "ruled-classic", arguments: arguments{"x-message-ttl": 1000}, want: doctor.Queue{Type: "classic", TTL: time.Second, DeliveryLimit: -1}},
		{name: "ruled-and-capped", arguments: arguments{"x-queue-type": "quorum"}, want: doctor.Queue{Type: "quorum", TTL: 5 * time.Second, DeliveryLimit: 7, DeadLetters: true}},
		{name: "capped", arguments: arguments{"x-message-ttl": 1000}, want: doctor.Queue{Type: "classic", TTL: time.Second, DeliveryLimit: -1}},
		{name: "stream", arguments: arguments{"x-queue-type": "stream"}, want: doctor.Queue{Type: "stream", TTL: -1, DeliveryLimit: -1}},
	}
	management, err := doctor.NewManagement(base + "/")
	require.NoError(t, err)
	for _, tt := range tests {
		queue := arguments{"durable": true}
		if tt.arguments != nil {
			queue["arguments"] = tt.arguments
		}
		send(t, base, "/api/queues/shop%2Feu/"+url.PathEscape(tt.name), queue)
	}
	// Its policies are known with a queue's first statistics, which come every 5 s.
	for _, tt := range tests {
		tt.want.Name = tt.name
		var got doctor.Queue
		require.Eventually(t, func() bool {
			got, err = management.Queue(t.Context(), "shop/eu", tt.name)
			return err == nil || !strings.Contains(err.Error(), "it does not tell which policies apply")
		}, patience, tick, tt.name)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}

	_, err = management.Queue(t.Context(), "shop/eu", "missing")
	require.ErrorIs(t, err, doctor.ErrNoQueue)
	_, err = management.Queue(t.Context(), "/", "plain")
	require.ErrorIs(t, err, doctor.ErrNoQueue)

	wrong, err := doctor.NewManagement(strings.Replace(base, "guest:guest", "guest:hunter2", 1))
	require.NoError(t, err)
	_, err = wrong.Queue(t.Context(), "/", "plain")
	require.ErrorContains(t, err, `it refuses user "guest" (401 Unauthorized)`)
	require.NotContains(t, err.Error(), "hunter2")
}

// Answers that this RabbitMQ does not give: those of other versions, and of what is
// no RabbitMQ.
func TestManagement_Answers(t *testing.T) {
	t.Parallel()

	const quorum = `{"name": "q", "type": "quorum", "arguments": {}, "effective_policy_definition": []}`
	tests := []struct {
		name            string
		status          int
		queue, overview string
		want            doctor.Queue
		err             string
	}{
		{
			name: "DefaultLimit", queue: quorum, overview: `{"rabbitmq_version": "4.1.0"}`,
			want: doctor.Queue{Name: "q", Type: "quorum", TTL: -1, DeliveryLimit: 20, ByDefault: true},
		},
		{
			name: "NoDefaultLimit", queue: quorum, overview: `{"rabbitmq_version": "3.13.7"}`,
			want: doctor.Queue{Name: "q", Type: "quorum", TTL: -1, DeliveryLimit: -1},
		},
		{
			name: "Unlimited", queue: `{"name": "q", "type": "quorum", "arguments": {"x-delivery-limit": -1}, "effective_policy_definition": {"delivery-limit": -1}}`,
			want: doctor.Queue{Name: "q", Type: "quorum", TTL: -1, DeliveryLimit: -1},
		},
		{
			name: "UnlimitedByOneOfTwo", queue: `{"name": "q", "type": "quorum", "arguments": {"x-delivery-limit": 5}, "effective_policy_definition": {"delivery-limit": -1}}`,
			want: doctor.Queue{Name: "q", Type: "quorum", TTL: -1, DeliveryLimit: 5},
		},
		{name: "NoPolicies", queue: `{"name": "q", "type": "classic", "arguments": {}}`, err: "it does not tell which policies apply"},
		{name: "OddVersion", queue: quorum, overview: `{"rabbitmq_version": "four"}`, err: `it does not tell its version, but "four"`},
		{name: "OddNumber", queue: `{"name": "q", "arguments": {"x-message-ttl": "1h"}, "effective_policy_definition": {}}`, err: `message-ttl is "1h", no whole number`},
		{name: "OddPolicy", queue: `{"name": "q", "arguments": {}, "effective_policy_definition": {"message-ttl": 1.5}}`, err: "message-ttl is 1.5, no whole number"},
		{name: "NoJSON", queue: `<html>`, err: "read its answer"},
		{name: "Nothing", status: http.StatusInternalServerError, queue: `{}`, err: "it answers 500 Internal Server Error"},
		{name: "Forbidden", status: http.StatusForbidden, queue: `{}`, err: `it refuses user "shop"`},
		{name: "SomebodyElse", status: http.StatusNotFound, queue: "404 page not found", err: "it answers 404 Not Found, and not as RabbitMQ does"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user, password, _ := r.BasicAuth()
				if user != "shop" || password != "hunter2" {
					t.Errorf("logs in as %q", user)
				}
				if r.URL.Path == "/rabbit/api/overview" {
					_, _ = w.Write([]byte(tt.overview))
					return
				}
				if want := "/rabbit/api/queues/%2F/q"; r.URL.EscapedPath() != want {
					t.Errorf("asks for %s, not %s", r.URL.EscapedPath(), want)
				}
				if tt.status != 0 {
					w.WriteHeader(tt.status)
				}
				_, _ = w.Write([]byte(tt.queue))
			}))
			t.Cleanup(server.Close)
			management, err := doctor.NewManagement(strings.Replace(server.URL, "://", "://shop:hunter2@", 1) + "/rabbit")
			require.NoError(t, err)

			got, err := management.Queue(t.Context(), "/", "q")

			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				require.NotErrorIs(t, err, doctor.ErrNoQueue)
				require.NotContains(t, err.Error(), "hunter2")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestManagement_Address(t *testing.T) {
	t.Parallel()

	for _, address := range []string{"", "localhost:15672", "amqp://user:hunter2@host", "http://", "http://user:hunter2@[bad/", "http://user:hunter2@ho st/"} {
		_, err := doctor.NewManagement(address)
		require.ErrorContains(t, err, "it is not like http://user:password@host:15672", address)
		require.NotContains(t, err.Error(), "hunter2")
	}

	management, err := doctor.NewManagement("http://user:hunter2@127.0.0.1:1") // port 1: nobody listens
	require.NoError(t, err)
	_, err = management.Queue(t.Context(), "/", "q")
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.NotContains(t, err.Error(), "hunter2")
}
