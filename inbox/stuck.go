package inbox

import (
	"context"
	"log/slog"
	"time"
)

const (
	// resumeEvery is how often a worker looks for messages that wait for nobody.
	resumeEvery = 10 * time.Minute

	// resumeAtOnce bounds the rows that one statement makes ready.
	resumeAtOnce = 5000
)

// resumeStuck makes ready what waits for nobody. Where that goes wrong it is for
// the next time: what can be taken does not wait for it.
func (in *Inbox) resumeStuck(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	tag, err := in.pool.Exec(ctx, in.rows.unparkSettled, in.consumerID)
	if err == nil && tag.RowsAffected() > 0 {
		in.cfg.Logger.WarnContext(ctx, "messages held their keys for dead letters that are settled, or not there; they go",
			slog.String("consumer", in.consumer), slog.Int64("messages", tag.RowsAffected()))
	}
	var resumed int64
	for more := true; more; {
		sql, args := in.rows.resumeStuck, []any{in.consumerID}
		if in.cfg.Ordering == PerKey {
			sql, args = in.rows.resumeBehind, append(args, resumeAtOnce)
		}
		tag, err := in.pool.Exec(ctx, sql, args...)
		resumed += tag.RowsAffected()
		more = err == nil && in.cfg.Ordering == PerKey && tag.RowsAffected() == resumeAtOnce
	}
	if resumed > 0 {
		in.cfg.Logger.WarnContext(ctx, "messages waited in the inbox behind others that are not there, or whose order is not kept any more; they go on",
			slog.String("consumer", in.consumer), slog.Int64("messages", resumed))
	}
}
