package inbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/schema"
)

// settingsSQL reads the settings of a session that the promise depends on.
//
//go:embed queries/settings.sql
var settingsSQL string

var (
	// ErrSynchronousCommit is returned at start when a committed transaction
	// could be lost with the server's machine: a message acknowledged after it
	// would be gone.
	ErrSynchronousCommit = errors.New("synchronous_commit is off")

	// ErrEncoding is returned at start when the database is not UTF8.
	ErrEncoding = errors.New("database encoding is not UTF8")

	// ErrReadOnlyDatabase is returned at start when the database takes no writes.
	ErrReadOnlyDatabase = errors.New("database is read-only")
)

// start runs the start checks once, and again after they failed. Callers that
// come meanwhile wait for the one that does them.
func (in *Inbox) start(ctx context.Context) error {
	if in.started.Load() {
		return nil
	}
	select {
	case in.starting <- struct{}{}:
		defer func() { <-in.starting }()
	case <-ctx.Done():
		return fmt.Errorf("start consumer %q: %w", in.consumer, context.Cause(ctx))
	}
	if in.started.Load() {
		return nil
	}
	if err := in.check(ctx); err != nil {
		// A connection that broke under the checks says nothing about what they
		// check: the caller is to try again.
		if ctx.Err() == nil && !errors.Is(err, ErrOutage) && (isUnanswered(err) || isOutage(err)) {
			err = fmt.Errorf("%w: %w", ErrOutage, err)
		}
		return fmt.Errorf("start consumer %q: %w", in.consumer, err)
	}
	in.started.Store(true)
	return nil
}

func (in *Inbox) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*in.cfg.StatementTimeout)
	defer cancel()
	var commit, encoding, readOnly string
	err := in.pool.QueryRow(ctx, settingsSQL, pgx.QueryExecModeExec).Scan(&commit, &encoding, &readOnly)
	switch {
	case err != nil:
		return fmt.Errorf("%w: read the session's settings: %w: see whether the database runs and whether the pool's connection string names it", ErrOutage, err)
	case commit == "off":
		return fmt.Errorf("%w: a crash of the server would lose messages that were acknowledged; set it to on for this role or pool", ErrSynchronousCommit)
	case encoding != "UTF8":
		return fmt.Errorf("%w: it is %s; create the database with ENCODING 'UTF8'", ErrEncoding, encoding)
	case readOnly == "on":
		return fmt.Errorf("%w: connect to the primary, and without default_transaction_read_only", ErrReadOnlyDatabase)
	}
	if err := in.checkPooler(ctx); err != nil {
		return fmt.Errorf("look for a pooler before the database: %w", err)
	}
	if err := schema.Check(ctx, in.pool, in.cfg.Schema); err != nil {
		return err
	}
	if err := schema.CheckAccess(ctx, in.pool, in.cfg.Schema, schema.Application); err != nil {
		return err
	}
	if err := in.checkRoute(ctx); err != nil {
		return err
	}
	if err := in.checkCodec(ctx); err != nil {
		return err
	}
	if err := in.checkIsolation(ctx); err != nil {
		return err
	}
	if err := in.store.Register(ctx, in.pool, in.consumer); err != nil {
		return in.explainPooler(err)
	}
	return in.explainPooler(in.store.NoteSettings(ctx, in.pool, in.consumer, in.cfg.settings(in.pool.Config().MaxConns)))
}
