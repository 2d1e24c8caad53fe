package webhook

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/semel-go/semel/handler"
)

// PublisherConfig holds what is optional. The zero value works.
type PublisherConfig struct {
	// MoreSecrets sign too, beside the first one: while it is rotated, each request has
	// a signature of the old secret and one of the new.
	MoreSecrets []string

	// IdempotencyKey gives the Idempotency-Key of a message: up to 255 printable ASCII
	// characters, the same for each attempt; empty sends none. Defaults to the id of
	// the message. It must be safe for concurrent use and must not change the message.
	IdempotencyKey func(msg *handler.Message) string

	// Concurrency is how many requests are out at once. More wait, for half of their
	// attempt's time at most; a relay gives it no more. Defaults to 100.
	Concurrency int

	// ConnectTimeout bounds connecting, and the TLS handshake after it, of the default
	// Transport. Defaults to 3 seconds.
	ConnectTimeout time.Duration

	// RequestTimeout bounds a request to the end of its answer. Nine tenths of what is
	// left of an attempt are the most it takes, so that an endpoint that hangs is told
	// from an attempt that ended. Defaults to 4 seconds.
	RequestTimeout time.Duration

	// AllowPlain allows a URL without TLS to another machine: whoever is between reads
	// the events, and can answer in place of the endpoint.
	AllowPlain bool

	// Transport sends the requests, for a proxy or certificates of your own. It must
	// follow no redirect and send nothing twice. Defaults to one with ConnectTimeout.
	Transport http.RoundTripper

	// Clock tells the time that is signed. Defaults to [time.Now].
	Clock func() time.Time

	// Logger is told when our signature is refused again and again. Defaults to
	// [slog.Default].
	Logger *slog.Logger
}

func (c PublisherConfig) withDefaults() PublisherConfig {
	setDefault(&c.Concurrency, 100)
	setDefault(&c.ConnectTimeout, 3*time.Second)
	setDefault(&c.RequestTimeout, 4*time.Second)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Transport == nil {
		c.Transport = c.transport()
	}
	return c
}

func (c PublisherConfig) validate() error {
	var errs []error
	if c.Concurrency < 1 || c.Concurrency > 10_000 {
		errs = append(errs, fmt.Errorf("Concurrency is %d; it must be between 1 and 10000", c.Concurrency)) //nolint:staticcheck // the name of a field
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"ConnectTimeout", c.ConnectTimeout}, {"RequestTimeout", c.RequestTimeout}} {
		if f.value < time.Millisecond || f.value > 5*time.Minute {
			errs = append(errs, fmt.Errorf("%s is %s; it must be between 1ms and 5m0s", f.name, f.value))
		}
	}
	return errors.Join(errs...)
}

// transport keeps a connection for each request that may be out. Answers are asked for
// as they are: nobody reads more than their status.
func (c PublisherConfig) transport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		t = standard.Clone()
	}
	t.DialContext = (&net.Dialer{Timeout: c.ConnectTimeout, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = c.ConnectTimeout
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, c.Concurrency
	t.DisableCompression = true
	t.ForceAttemptHTTP2 = true
	return t
}

// address is where a publisher sends to.
type address struct {
	url      *url.URL
	user     *url.Userinfo // sent as Authorization; nil: none
	readable string        // without what may be secret
}

// parseAddress keeps quiet about the text itself, which may hold a password.
func parseAddress(text string, allowPlain bool) (address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return address{}, errors.New("URL must be like https://host/path")
	}
	if u.Scheme == "http" && !allowPlain && !isLoopback(u.Hostname()) {
		return address{}, fmt.Errorf("URL leads to %s without TLS, where whoever is between reads the events and answers in its place: take https, or allow it", u.Hostname())
	}
	user := u.User
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return address{url: u, user: user, readable: readable(u)}, nil
}

// readable is a URL without user, query and fragment.
func readable(u *url.URL) string {
	const longest = 200
	text := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
	return text[:min(len(text), longest)]
}

func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
