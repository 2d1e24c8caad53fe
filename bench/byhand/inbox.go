package byhand

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

// Inbox copies messages into the table of the inbox, and does nothing else: no
// claim, so a message that comes twice breaks it.
type Inbox struct {
	Pool *pgxpool.Pool
	ID   int32
}

// Copy stores messages in one transaction.
func (i *Inbox) Copy(ctx context.Context, msgs []*handler.Message) error {
	columns := []string{"consumer_id", "message_id", "fingerprint", "message_text", "message_type", "key", "key_hash", "place", "payload"}
	_, err := i.Pool.CopyFrom(ctx, pgx.Identifier{"inbox_messages"}, columns, pgx.CopyFromSlice(len(msgs), func(n int) ([]any, error) {
		m := msgs[n]
		return []any{
			i.ID, dedup.MessageID(m.ID), dedup.Fingerprint(m.Type, m.Payload), m.ID, m.Type, m.Key,
			dedup.Fingerprint("", m.Key), int64(1), m.Payload,
		}, nil
	}))
	return err
}
