package example

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Server serves HTTP on loopback. Make one with [Listen], and run it.
type Server struct {
	// URL is where it is, without a slash at the end.
	URL string

	listener net.Listener
	server   *http.Server
}

// Listen takes a free port.
func Listen(ctx context.Context, h http.Handler) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve HTTP: %w", err)
	}
	return &Server{
		URL:      "http://" + listener.Addr().String(),
		listener: listener,
		server:   &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second},
	}, nil
}

// Run serves until ctx ends, and then answers what was asked before.
func (s *Server) Run(ctx context.Context) error {
	const drainTimeout = 2 * time.Second
	var g errgroup.Group
	ctx, stop := context.WithCancel(ctx)
	g.Go(func() error {
		<-ctx.Done()
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if s.server.Shutdown(draining) != nil {
			return s.server.Close()
		}
		return nil
	})
	g.Go(func() error {
		defer stop()
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	return g.Wait()
}
