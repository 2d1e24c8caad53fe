package httpbreaker

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/semel-go/semel/breaker"
)

// Config configures a [Transport]. The zero value is ready to use.
type Config struct {
	// Base sends the requests. Defaults to a clone of [http.DefaultTransport] with
	// ConnectTimeout. One that is given keeps its own life.
	Base http.RoundTripper

	// ConnectTimeout bounds connecting, and the TLS handshake after it, of the
	// default Base. Defaults to 3 s; negative: none.
	ConnectTimeout time.Duration

	// RequestTimeout bounds a request from its start to the end of the answer's
	// body. Defaults to 10 s; negative: only the context of the request does.
	RequestTimeout time.Duration

	// Name tells which breaker a request belongs to. Defaults to the host of its
	// URL: in lower case, with the port unless it is the scheme's own.
	Name func(req *http.Request) string

	// MaxBreakers bounds how many there are. Beyond, one that is closed and was not
	// asked for by name is forgotten; if there is none, new names share one.
	// Defaults to 1000.
	MaxBreakers int

	// Breaker configures each breaker.
	Breaker breaker.Config

	// Budget configures the retry budget of each breaker: requests of a message's
	// second and later attempts take a token.
	Budget breaker.BudgetConfig

	// OnChange is told of each change of state. It must be quick.
	OnChange func(b *breaker.Breaker, from, to breaker.State)

	// Logger is told when a breaker opens, and closes again. Defaults to
	// [slog.Default].
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 3 * time.Second
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 10 * time.Second
	}
	if c.MaxBreakers == 0 {
		c.MaxBreakers = 1000
	}
	if c.Name == nil {
		c.Name = hostOf
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Base == nil {
		c.Base = newBase(max(c.ConnectTimeout, 0))
	}
	return c
}

func newBase(connectTimeout time.Duration) *http.Transport {
	base := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		base = t.Clone()
	}
	base.DialContext = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
	base.TLSHandshakeTimeout = connectTimeout
	return base
}
