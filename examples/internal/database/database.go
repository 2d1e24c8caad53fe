// Package database gives an example a PostgreSQL: the one that $DATABASE_URL
// names, else a server of its own for as long as the program runs, from
// binaries found on the machine or, where there are none, downloaded once.
package database

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL that answers.
type Server struct {
	// URL is how to connect to it.
	URL string

	// About says for people which one it is.
	About string

	// Own reports that the server lives and ends with this program.
	Own bool

	stop func()
}

// Open returns a server that answers. Note is told what takes long.
func Open(ctx context.Context, note func(string)) (*Server, error) {
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		return start(ctx, note)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("reach the PostgreSQL that DATABASE_URL names: %w: correct the variable, or leave it out for an embedded server", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing was written
	return &Server{
		URL:   url,
		About: fmt.Sprintf("PostgreSQL %s at %s (DATABASE_URL)", conn.PgConn().ParameterStatus("server_version"), conn.PgConn().Conn().RemoteAddr()),
		stop:  func() {},
	}, nil
}

// Close ends a server of our own, with everything in it.
func (s *Server) Close() { s.stop() }
