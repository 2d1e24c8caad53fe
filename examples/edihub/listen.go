package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
)

// listen takes posts of whoever runs the example and hands them to the hub, until
// Ctrl-C.
func (r *run) listen(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.address)
	if err != nil {
		return fmt.Errorf("take posts at -listen %s: %w", r.address, err)
	}
	front := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		to, err := url.Parse(r.partners.url())
		if err != nil || to.Host == "" {
			http.Error(w, "the hub is starting, try again", http.StatusServiceUnavailable)
			return
		}
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = to.Scheme, to.Host }}).ServeHTTP(w, req)
	})}
	r.Say(`now it is your turn, until Ctrl-C: post this twice, and cmp mdn.1 mdn.2

  curl -s http://%s/as2 -H 'AS2-From: %s' -H 'AS2-To: "%s"' -H 'Message-ID: <mine-1@example.com>' \
    -H 'Disposition-Notification-To: me' -H 'Content-Type: application/edifact' --data-binary @examples/edihub/invoic.edi -o mdn.1
`, listener.Addr(), acme, hubName)
	var g errgroup.Group
	g.Go(func() error {
		select {
		case <-r.interrupted:
		case <-ctx.Done():
		}
		return front.Close()
	})
	g.Go(func() error {
		if err := front.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("take posts at -listen %s: %w", r.address, err)
		}
		return nil
	})
	return g.Wait()
}
