package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// All decisions on what an error means are in this file. An outage is not a
// failure of the message, and a failure of the message is not an outage.

// SQLSTATEs that have a meaning of their own here.
const (
	codeSerialization     = "40001"
	codeDeadlock          = "40P01"
	codeLockTimeout       = "55P03"
	codeReadOnly          = "25006"
	codeConfigLimit       = "53400"
	codeAdminShutdown     = "57P01"
	codeCrashShutdown     = "57P02"
	codeCannotConnect     = "57P03"
	codeForbidden         = "42501"
	codeNoTable           = "42P01"
	codeNoSchema          = "3F000"
	codeDuplicatePrepared = "42P05"
	codeNoPrepared        = "26000"
	classConnection       = "08"
	classResources        = "53"
	classSystem           = "58"
	classData             = "22"
	classProgramLimits    = "54"
	lengthOfClassPrefix   = 2
)

// judge says what the error of user code means.
func (in *Inbox) judge(ctx context.Context, r callResult) verdict {
	err := r.err
	switch {
	case r.own:
		return in.judgeOwn(ctx, err)
	case ctx.Err() != nil:
		// Drain, or the caller left: our own cancellation says nothing about the message.
		return verdict{kind: stopped, err: context.Cause(ctx)}
	case r.expired:
		// Past its own deadline whatever it says is a consequence of that.
		return verdict{kind: failed, err: fmt.Errorf("%w after %s: %w", ErrHandlerTimeout, in.cfg.HandlerTimeout, err)}
	case handler.IsInFlight(err):
		return verdict{kind: elsewhere, err: err}
	case shutBy(err) != nil:
		return verdict{kind: shut, err: err}
	case handler.IsPermanent(err):
		return verdict{kind: permanent, err: err}
	case isCollision(err):
		return verdict{kind: rerun, err: err}
	case in.misprepared(err):
		return verdict{kind: away, err: in.explainPooler(err)}
	case handler.IsOutage(err) && isMisinstalled(err):
		return verdict{kind: away, err: err}
	case r.connLost || isOutage(err) || handler.IsOutage(err):
		// The database may be away, or this statement or connection was the
		// only one to suffer: a look tells.
		if probeErr := in.probe(ctx); probeErr != nil {
			return verdict{kind: away, err: errors.Join(err, probeErr)}
		}
		return verdict{kind: failed, err: err}
	default:
		return verdict{kind: failed, err: err}
	}
}

// judgeClaim says what the failure of a claim means.
func (in *Inbox) judgeClaim(ctx context.Context, err error) verdict {
	if sqlState(err) == codeLockTimeout {
		return verdict{kind: elsewhere, err: err}
	}
	return in.judgeOwn(ctx, err)
}

// judgeOwn says what the failure of a statement of the engine means: the
// database cannot do its part, which is an outage, unless the message itself
// is what it refuses.
func (in *Inbox) judgeOwn(ctx context.Context, err error) verdict {
	switch {
	case ctx.Err() != nil:
		return verdict{kind: stopped, err: context.Cause(ctx)}
	case errors.Is(err, handler.ErrCodec):
		// Keys may be away as a database may. Whatever the codec says, also with an
		// SQLSTATE of its own: what it does not encode is not stored, and not lost.
		return verdict{kind: away, err: err}
	case isCollision(err):
		return verdict{kind: rerun, err: err}
	case isRefusedContent(err):
		// A server that takes no writes at all says program_limit_exceeded too
		// (it guards itself against wraparound of transaction ids): a look tells.
		if probeErr := in.probe(ctx); probeErr != nil {
			return verdict{kind: away, err: errors.Join(err, probeErr)}
		}
		return verdict{kind: permanent, err: err}
	default:
		return verdict{kind: away, err: in.explainPooler(err)}
	}
}

// judgeCommit says what an error of COMMIT means.
func (in *Inbox) judgeCommit(t *task, err error) verdict {
	switch {
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return verdict{kind: failed, err: err}
	case isCollision(err):
		return verdict{kind: rerun, err: err}
	}
	if code := sqlState(err); code != "" && !isOutage(err) {
		return verdict{kind: failed, err: err} // a deferred constraint, for one
	}
	return doubt(t, err)
}

// shutBy returns the breaker behind an error that says nothing about the message: it
// refused the call, or is not closed since. Nil: the error may be the message's.
func shutBy(err error) *breaker.Breaker {
	b := breaker.Of(err)
	if b == nil || !isAway(b, err) {
		return nil
	}
	return b
}

// isCollision reports a serialization failure or a deadlock: nothing was wrong
// with the message, it met another one.
func isCollision(err error) bool {
	code := sqlState(err)
	return code == codeSerialization || code == codeDeadlock
}

// isOutage reports an error that can mean that the database is away.
func isOutage(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return true
	}
	switch code := sqlState(err); code {
	case "", codeConfigLimit: // 53400 is a limit that somebody set
		return false
	case codeAdminShutdown, codeCrashShutdown, codeCannotConnect, codeReadOnly:
		return true
	default:
		switch code[:lengthOfClassPrefix] {
		case classConnection, classResources, classSystem:
			return true
		}
		return false
	}
}

// isMisinstalled reports that a table is missing, or the right to it. That is a
// matter of the installation, not of a message, and mended by a person.
func isMisinstalled(err error) bool {
	switch sqlState(err) {
	case codeForbidden, codeNoTable, codeNoSchema:
		return true
	default:
		return false
	}
}

// isUnanswered reports that the database said nothing: the connection broke, or
// the time for an answer was up.
func isUnanswered(err error) bool {
	var network net.Error // also a context whose deadline passed
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed) || errors.As(err, &network)
}

// isRefusedContent reports that the database refuses a value as such: a data
// exception, or a limit of the program.
func isRefusedContent(err error) bool {
	code := sqlState(err)
	return code != "" && (code[:lengthOfClassPrefix] == classData || code[:lengthOfClassPrefix] == classProgramLimits)
}

// sqlState is the five-character code of the server's error, or empty.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && len(pg.Code) == 5 {
		return pg.Code
	}
	return ""
}

// reasonOf is under which reason a message goes to the dead letters.
func reasonOf(err error) dlq.Reason {
	switch {
	case errors.Is(err, errUnusableID):
		return dlq.BadID
	case errors.Is(err, handler.ErrUndecodable):
		return dlq.Undecodable
	case errors.Is(err, handler.ErrUnknownType):
		return dlq.UnknownType
	case errors.Is(err, handler.ErrCallUnknown):
		return dlq.CallUnknown
	case errors.Is(err, handler.ErrPayloadTooLarge):
		return dlq.TooLarge
	default:
		return dlq.Permanent
	}
}
