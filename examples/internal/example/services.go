package example

import (
	"context"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/examples/internal/database"
)

// Services is what a process of the crew is told of the services: embed it in the
// config of a part.
type Services struct {
	Name        string // of the process
	DatabaseURL string
	Schema      string
	Brokers     []string
	Topic       string
}

// Services is what the process of a name is told.
func (r *Run) Services(name string) Services {
	return Services{Name: name, DatabaseURL: r.Server.URL, Schema: r.Schema, Brokers: r.Kafka.Brokers, Topic: r.Topic}
}

// Pool connects to the schema of the run.
func (s Services) Pool(ctx context.Context, size int32) (*pgxpool.Pool, error) {
	return database.NewPool(ctx, s.DatabaseURL, s.Schema, s.Name, size)
}

// Group is a consumer's group on the broker.
func (s Services) Group(consumer string) string { return s.Topic + "." + consumer }

// Logger logs what the process of this name does.
func (s Services) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With(slog.String("process", s.Name))
}
