package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

// errUnusableID marks a message that cannot be claimed under an id of its own.
var errUnusableID = errors.New("message has no usable id")

// identify finds out under what the message is claimed, before anything is
// decoded. Verdict kinds: none (it is known), permanent (the message cannot be
// handled and is claimed for its dead letter only), stopped; of a suspect also
// those of the engine's own statements.
func (in *Inbox) identify(ctx context.Context, t *task) verdict {
	if t.stored != nil {
		t.identity = identityOf(t)
		return verdict{}
	}
	if in.cfg.ID == nil && in.cfg.Fingerprint == nil {
		return in.identifyAs(t, t.msg.ID, nil, fingerprintOf(t.msg), true)
	}
	// The user's functions run guarded, as a handler does. What they found is
	// read only if they came back.
	found := struct {
		id     string
		number int64
		known  bool
	}{id: t.msg.ID, known: true}
	ask := func(context.Context, pgx.Tx, *handler.Message) (err error) {
		if in.cfg.Fingerprint == nil {
			found.number = fingerprintOf(t.msg)
		} else if part := in.cfg.Fingerprint(t.msg); part != nil {
			found.number = dedup.Fingerprint(t.msg.Type, part)
		} else {
			found.known = false
		}
		if in.cfg.ID != nil {
			found.id, err = in.cfg.ID(t.msg)
		}
		return err
	}
	result := in.journaled(ctx, t, func() callResult { return in.guarded(ctx, &guardedCall{}, ask, nil, t) })
	switch {
	case ctx.Err() != nil:
		return verdict{kind: stopped, err: context.Cause(ctx)}
	case result.own:
		return in.judgeOwn(ctx, result.err)
	case result.abandoned:
		return in.identifyAs(t, t.msg.ID, result.err, 0, false)
	}
	return in.identifyAs(t, found.id, result.err, found.number, found.known)
}

// fingerprintOf is what copies of a message have in common, unless
// [Config.Fingerprint] says something else.
func fingerprintOf(msg *handler.Message) int64 {
	if msg.Stable != nil {
		return dedup.Fingerprint(msg.Type, msg.Stable)
	}
	return dedup.Fingerprint(msg.Type, msg.Payload)
}

func (in *Inbox) identifyAs(t *task, id string, err error, fingerprint int64, known bool) verdict {
	t.identity.fingerprint = pgtype.Int8{Int64: fingerprint, Valid: known}
	if err == nil {
		err = dedup.CheckID(id)
	}
	origin := &t.msg.Origin
	switch {
	case err == nil:
		t.identity.id = dedup.MessageID(id)
		t.identity.text = dedup.Text(id, t.identity.id)
	case in.cfg.BadID == BadIDPosition && origin.Position != "":
		t.identity.id = dedup.HashID([]byte("position"), []byte(origin.Transport), []byte(origin.Position))
		t.identity.text = pgtype.Text{String: printable(origin.Transport + " " + origin.Position), Valid: true}
	default:
		t.identity.surrogate = true
		t.identity.id = surrogateID(t.msg)
		return verdict{kind: permanent, err: fmt.Errorf("%w: %w", errUnusableID, err)}
	}
	if size := len(t.msg.Payload); size > in.cfg.MaxPayload {
		return verdict{kind: permanent, err: fmt.Errorf("%w: %d bytes, limit %d", handler.ErrPayloadTooLarge, size, in.cfg.MaxPayload)}
	}
	return verdict{}
}

// surrogateID is what the dead letter of a message without a usable id is
// claimed under: its one position where the source has one, else all that is
// known of it.
func surrogateID(msg *handler.Message) dedup.ID {
	o := &msg.Origin
	if o.Position != "" {
		return dedup.HashID([]byte("surrogate"), []byte(o.Transport), []byte(o.Position))
	}
	return dedup.HashID([]byte("surrogate"), []byte(o.Transport), []byte(o.Topic), []byte(msg.ID), msg.Payload)
}

// printable is text from outside as it may stand in a log line and in the
// database's text.
func printable(text string) string {
	const limit = 255
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
}
