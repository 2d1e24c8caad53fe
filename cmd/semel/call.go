package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/schema"
)

// connectTimeout applies where the connection string says nothing.
const connectTimeout = 10 * time.Second

// call is one command with its command line.
type call struct {
	cmd    command
	path   string
	args   []string
	stdout io.Writer
	stderr io.Writer // for what a command tells while it works

	flags    *flag.FlagSet
	schema   string
	database string
}

// newCall returns a call with the flag that all commands have. A command adds
// its own and then calls parse.
func newCall(cmd command, path string, args []string, stdout, stderr io.Writer) *call {
	c := &call{cmd: cmd, path: path, args: args, stdout: stdout, stderr: stderr, flags: flag.NewFlagSet(path, flag.ContinueOnError)}
	c.flags.SetOutput(io.Discard)
	c.flags.StringVar(&c.schema, "schema", schema.Default, "`name` of the schema that holds the tables")
	return c
}

// needsDatabase adds the flag of the commands that talk to one.
func (c *call) needsDatabase() {
	c.flags.StringVar(&c.database, "database", "", "connection `string` of the database (default $DATABASE_URL)")
}

// parse reads the command line; flags may stand before and after arguments.
func (c *call) parse() (arguments []string, err error) {
	for args := c.args; ; args = c.flags.Args()[1:] {
		if err := c.flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			c.help()
			return nil, err
		} else if err != nil {
			return nil, c.usage("%s", err)
		}
		if c.flags.NArg() == 0 {
			break
		}
		arguments = append(arguments, c.flags.Arg(0))
	}
	if err := schema.CheckName(c.schema); err != nil {
		return nil, c.usage("%s", err)
	}
	return arguments, nil
}

// parseNoArguments is for commands that have only flags.
func (c *call) parseNoArguments() error {
	arguments, err := c.parse()
	if err == nil && len(arguments) > 0 {
		err = c.usage("%s takes no argument, but got %q", c.path, masked(arguments[0]))
	}
	return err
}

// masked is an argument that is shown though nobody knows what it is: not if it
// could hold a password.
func masked(argument string) string {
	if scheme, _, isURL := strings.Cut(argument, "://"); isURL {
		return scheme + "://..."
	}
	if before, _, found := strings.Cut(argument, "password"); found {
		return before + "password..."
	}
	return argument
}

func (c *call) help() {
	fmt.Fprintf(c.stdout, "%s\n\nUsage: %s%s\n\n", c.cmd.summary, c.path, c.cmd.synopsis)
	c.flags.SetOutput(c.stdout)
	c.flags.PrintDefaults()
	if c.cmd.note != "" {
		fmt.Fprintf(c.stdout, "\n%s\n", c.cmd.note)
	}
}

func (c *call) usage(format string, args ...any) error {
	return &usageError{c.path, fmt.Sprintf(format, args...)}
}

// dsn returns the connection string, and where it is from.
func (c *call) dsn() (from, dsn string, err error) {
	from, dsn = "-database", c.database
	if dsn == "" {
		from, dsn = "$DATABASE_URL", os.Getenv("DATABASE_URL")
	}
	if dsn == "" {
		err = c.usage("no database: set $DATABASE_URL or give -database, for example postgres://user@localhost:5432/name")
	}
	return from, dsn, err
}

// config reads the connection string. It may be that of an application's pool.
func (c *call) config() (config *pgx.ConnConfig, from string, err error) {
	from, dsn, err := c.dsn()
	if err != nil {
		return nil, from, err
	}
	pool, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, from, c.unreadable(from)
	}
	return pool.ConnConfig, from, nil
}

func (c *call) unreadable(from string) error {
	return c.usage("read the connection string in %s: it is neither a URL such as postgres://user@localhost:5432/name nor key=value pairs that PostgreSQL knows", from)
}

// prepare sets what the connection string leaves open.
func prepare(config *pgx.ConnConfig) {
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "semel"
	}
	if config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // as good for a few statements, and a pooler loses none
	}
}

// connect opens the database. No error of it shows the connection string,
// which holds a password.
func (c *call) connect(ctx context.Context) (*pgx.Conn, error) {
	config, from, err := c.config()
	if err != nil {
		return nil, err
	}
	prepare(config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, unreachable(config, from, err)
	}
	return conn, nil
}

func unreachable(config *pgx.ConnConfig, from string, err error) error {
	cause := err
	if inner := errors.Unwrap(err); inner != nil {
		cause = inner // without the driver's own preface
	}
	return fmt.Errorf("connect to database %q on %s:%d as %q (from %s): %w", config.Database, config.Host, config.Port, config.User, from, cause)
}

// withDatabase runs do on a connection.
func (c *call) withDatabase(ctx context.Context, do func(conn *pgx.Conn) error) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // the result is out already
	}()
	return do(conn)
}
