package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// Every decision on an error is pinned here, also for wrapped errors.

func pgError(code string) error {
	return fmt.Errorf("update balance: %w", &pgconn.PgError{Code: code, Severity: "ERROR"})
}

func TestIsOutage(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		err  error
		want bool
	}{
		{name: "ConnectionClass", err: pgError("08006"), want: true},
		{name: "TooManyConnections", err: pgError("53300"), want: true},
		{name: "DiskFull", err: pgError("53100"), want: true},
		{name: "ConfiguredLimit", err: pgError("53400"), want: false},
		{name: "AdminShutdown", err: pgError("57P01"), want: true},
		{name: "CrashShutdown", err: pgError("57P02"), want: true},
		{name: "CannotConnectNow", err: pgError("57P03"), want: true},
		{name: "DatabaseDropped", err: pgError("57P04"), want: false},
		{name: "QueryCanceled", err: pgError("57014"), want: false},
		{name: "IdleInTransactionTimeout", err: pgError("25P03"), want: false},
		{name: "SystemError", err: pgError("58030"), want: true},
		{name: "ReadOnlyTransaction", err: pgError("25006"), want: true},
		{name: "UniqueViolation", err: pgError("23505"), want: false},
		{name: "Serialization", err: pgError("40001"), want: false},
		{name: "Connect", err: fmt.Errorf("acquire: %w", &pgconn.ConnectError{}), want: true},
		{name: "HandlersOwnNetworkError", err: errors.New("dial tcp: connection refused"), want: false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.want, isOutage(tt.err))
		})
	}
}

func TestIsUnanswered(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		err  error
		want bool
	}{
		{name: "Broken", err: io.ErrUnexpectedEOF, want: true},
		{name: "Ended", err: io.EOF, want: true},
		{name: "Reset", err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}, want: true},
		{name: "Closed", err: pgconn.ErrConnClosed, want: true},
		{name: "TooLate", err: context.DeadlineExceeded, want: true},
		{name: "Canceled", err: context.Canceled, want: false},
		{name: "Answered", err: pgError("42P01"), want: false},
		{name: "OurVerdict", err: ErrEncoding, want: false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.want, isUnanswered(fmt.Errorf("register consumer: %w", tt.err)))
		})
	}
}

func TestJudgeOwn(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		err  error
		want verdictKind
	}{
		{name: "MissingTable", err: pgError("42P01"), want: away},
		{name: "NoPermission", err: pgError("42501"), want: away},
		{name: "LostConnection", err: errors.New("unexpected EOF"), want: away},
		{name: "Timeout", err: context.DeadlineExceeded, want: away},
		{name: "Serialization", err: pgError("40001"), want: rerun},
		{name: "Deadlock", err: pgError("40P01"), want: rerun},
		{name: "LockTimeoutOutsideAClaim", err: pgError("55P03"), want: away},
		{name: "Codec", err: fmt.Errorf("%w: key service away", handler.ErrCodec), want: away},
		{name: "CodecThatMeetsARefusal", err: fmt.Errorf("%w: %w", handler.ErrCodec, pgError("22001")), want: away},
		{name: "CodecThatMeetsACollision", err: fmt.Errorf("%w: %w", handler.ErrCodec, pgError("40001")), want: away},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.want, new(Inbox).judgeOwn(t.Context(), tt.err).kind)
		})
	}
}

// What user code says of a statement on our own tables: a right that is missing is
// nobody's failed attempt, and what it says of its own statements is.
func TestJudge_SemelsOwnTables(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		err  error
		want verdictKind
	}{
		{name: "NoPermission", err: handler.Outage(pgError("42501")), want: away},
		{name: "MissingTable", err: handler.Outage(pgError("42P01")), want: away},
		{name: "MissingSchema", err: handler.Outage(pgError("3F000")), want: away},
		{name: "Collision", err: handler.Outage(pgError("40001")), want: rerun},
		{name: "HandlersOwnTable", err: pgError("42P01"), want: failed},
		{name: "InOtherHands", err: handler.InFlight(errors.New("another process calls")), want: elsewhere},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.want, new(Inbox).judge(t.Context(), callResult{err: fmt.Errorf("prepare: %w", tt.err)}).kind)
		})
	}
}

func TestIsRefusedContent(t *testing.T) {
	t.Parallel()

	require.True(t, isRefusedContent(pgError("22021")), "data exception")
	require.True(t, isRefusedContent(fmt.Errorf("claim message: %w", pgError("54000"))), "program limit")
	require.False(t, isRefusedContent(pgError("23505")))
	require.False(t, isRefusedContent(errors.New("unexpected EOF")))
}

func TestJudgeClaim_InFlightElsewhere(t *testing.T) {
	t.Parallel()

	require.Equal(t, elsewhere, new(Inbox).judgeClaim(t.Context(), pgError("55P03")).kind)
	require.Equal(t, away, new(Inbox).judgeClaim(t.Context(), pgError("57P01")).kind)
}

func TestJudgeCommit(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name        string
		err         error
		want        verdictKind
		wantInDoubt bool
	}{
		{name: "NoAnswer", err: errors.New("unexpected EOF"), want: away, wantInDoubt: true},
		{name: "Timeout", err: context.DeadlineExceeded, want: away, wantInDoubt: true},
		{name: "ShutdownWhileCommitting", err: pgError("57P01"), want: away, wantInDoubt: true},
		{name: "DeferredConstraint", err: pgError("23505"), want: failed},
		{name: "Serialization", err: pgError("40001"), want: rerun},
		{name: "Aborted", err: pgx.ErrTxCommitRollback, want: failed},
		{name: "FrozenTooLong", err: pgError("25P03"), want: failed},
		{name: "StatementTimeout", err: pgError("57014"), want: failed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var task task
			require.Equal(t, tt.want, new(Inbox).judgeCommit(&task, fmt.Errorf("commit: %w", tt.err)).kind)
			require.Equal(t, tt.wantInDoubt, task.inDoubt)
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()

	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(ErrDraining)

	tests := []struct {
		name   string
		ctx    context.Context
		result callResult
		want   verdictKind
	}{
		{name: "Plain", result: callResult{err: errors.New("no")}, want: failed},
		{name: "Permanent", result: callResult{err: fmt.Errorf("x: %w", handler.Permanent(errors.New("no")))}, want: permanent},
		{name: "Unavailable", result: callResult{err: handler.Unavailable(errors.New("502"))}, want: failed},
		{name: "Serialization", result: callResult{err: pgError("40001")}, want: rerun},
		{name: "Deadlock", result: callResult{err: pgError("40P01")}, want: rerun},
		{name: "QueryCanceled", result: callResult{err: pgError("57014")}, want: failed},
		// Past its own deadline nothing a handler says is believed.
		{name: "PermanentAfterDeadline", result: callResult{err: handler.Permanent(errors.New("no")), expired: true}, want: failed},
		{name: "OutageAfterDeadline", result: callResult{err: pgError("57P01"), expired: true, connLost: true}, want: failed},
		{name: "Stuck", result: callResult{err: errStuck, expired: true, abandoned: true}, want: failed},
		// Our own cancellation says nothing about the message.
		{name: "Drained", ctx: cancelled, result: callResult{err: context.Canceled}, want: stopped},
		{name: "PermanentWhileDraining", ctx: cancelled, result: callResult{err: handler.Permanent(errors.New("no"))}, want: stopped},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			require.Equal(t, tt.want, new(Inbox).judge(ctx, tt.result).kind)
		})
	}
}

func TestReasonOf(t *testing.T) {
	t.Parallel()

	for err, want := range map[error]dlq.Reason{
		errUnusableID:              dlq.BadID,
		handler.ErrUndecodable:     dlq.Undecodable,
		handler.ErrUnknownType:     dlq.UnknownType,
		handler.ErrPayloadTooLarge: dlq.TooLarge,
		errors.New("tax number"):   dlq.Permanent,
		pgError("22001"):           dlq.Permanent,
	} {
		require.Equal(t, want, reasonOf(fmt.Errorf("decode: %w", handler.Permanent(err))))
	}
}

// A pooler that mixes up prepared statements is no fault of the message. Who
// names a statement that does not exist, without any pooler, made a mistake.
func TestJudge_MixedUpStatements(t *testing.T) {
	t.Parallel()

	for _, code := range []string{"42P05", "26000"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()

			in := new(Inbox)
			require.Equal(t, failed, in.judge(t.Context(), callResult{err: pgError(code)}).kind)
			in.pooled.Store(true)
			for _, v := range []verdict{
				in.judge(t.Context(), callResult{err: pgError(code)}),
				in.judgeClaim(t.Context(), pgError(code)),
				in.judgeOwn(t.Context(), pgError(code)),
			} {
				require.Equal(t, away, v.kind)
				require.ErrorIs(t, v.err, ErrPooler)
				require.ErrorContains(t, v.err, "default_query_exec_mode=cache_describe")
			}
			require.NotErrorIs(t, in.judgeOwn(t.Context(), pgError("42501")).err, ErrPooler)
		})
	}
}
