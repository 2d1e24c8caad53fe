package example

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/examples/internal/broker"
	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/database"
	"github.com/semel-go/semel/schema"
)

const cleanupTimeout = 20 * time.Second

// Setup is what an example needs.
type Setup struct {
	Options

	// Name is the example's. It is part of all names it makes in a database or broker.
	Name string

	// Tables makes the tables of the example's own services.
	Tables string

	// Connections is how many the example itself needs. Its processes have pools of
	// their own.
	Connections int32

	// Topic is where the events go. On a broker that is not ours its name has an end
	// that no other run has. Empty: it has the name of the schema.
	Topic string

	// Partitions of the topic. Defaults to 4.
	Partitions int32

	// Consumers are those of the topic, each with a group on the broker.
	Consumers []string

	// Look are commands that look at the tables afterwards, with SCHEMA for the schema.
	Look []string
}

// Run is one run of an example: its services, and what it made in them. Make one
// with [Open], and close it.
type Run struct {
	// Out is where all is told.
	Out io.Writer

	Server *database.Server
	Kafka  *broker.Kafka
	Pool   *pgxpool.Pool

	// Schema and Topic are names that no other run has.
	Schema string
	Topic  string

	setup Setup
	began time.Time
}

// Open brings up the services and makes the schema, the tables and the topic.
func Open(ctx context.Context, out io.Writer, setup Setup) (r *Run, err error) {
	suffix := strings.ToLower(rand.Text()[:8])
	r = &Run{Out: out, Schema: "semel_" + setup.Name + "_" + suffix, setup: setup, began: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	if r.Server, err = database.Open(ctx, func(text string) { r.Say("%s", text) }); err != nil {
		return r, err
	}
	r.Say("%s", r.Server.About)
	if r.Kafka, err = broker.Open(ctx); err != nil {
		return r, err
	}
	r.Say("%s", r.Kafka.About)
	switch {
	case setup.Topic == "":
		r.Topic = r.Schema
	case r.Kafka.Own:
		r.Topic = setup.Topic
	default:
		r.Topic = setup.Topic + "." + suffix
	}
	if r.Pool, err = database.NewPool(ctx, r.Server.URL, r.Schema, "example", setup.Connections); err != nil {
		return r, err
	}
	return r, r.prepare(ctx)
}

func (r *Run) prepare(ctx context.Context) error {
	if _, err := schema.Up(ctx, r.Pool, r.Schema, 0); err != nil {
		return err
	}
	if _, err := r.Pool.Exec(ctx, r.setup.Tables); err != nil {
		return fmt.Errorf("make the tables of the services: %w", err)
	}
	partitions := r.setup.Partitions
	if partitions == 0 {
		partitions = 4
	}
	return r.Kafka.CreateTopic(ctx, r.Topic, partitions)
}

// Close removes what the run made, also after Ctrl-C, and ends services of our own.
func (r *Run) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	if r.Pool != nil {
		errs = append(errs, r.cleanUp(ctx))
		r.Pool.Close()
	}
	if r.Kafka != nil {
		r.Kafka.Close()
	}
	if r.Server != nil {
		r.Server.Close()
	}
	return errors.Join(errs...)
}

// cleanUp removes what was made on servers that stay.
func (r *Run) cleanUp(ctx context.Context) error {
	var errs []error
	if !r.Kafka.Own {
		for _, consumer := range r.setup.Consumers {
			r.Kafka.ForgetGroup(ctx, r.Services("").Group(consumer), consumer)
		}
		errs = append(errs, r.Kafka.DeleteTopic(ctx, r.Topic))
	}
	if !r.Server.Own && !r.setup.Keep {
		if _, err := r.Pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{r.Schema}.Sanitize()+" CASCADE"); err != nil {
			errs = append(errs, fmt.Errorf("drop schema %s: %w: drop it by hand", r.Schema, err))
		}
	}
	return errors.Join(errs...)
}

// Crew starts processes. Hand them to [Run.Work], which stops them.
func (r *Run) Crew(members ...crew.Member) (*crew.Crew, error) {
	return crew.Start(r.setup.Verbose, members...)
}

// Say prints what happens, with the time since the start.
func (r *Run) Say(format string, args ...any) {
	fmt.Fprintf(r.Out, "%5.1fs  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}
