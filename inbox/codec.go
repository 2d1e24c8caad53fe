package inbox

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
)

// encode makes of the payload of a message that is to be stored what is stored of
// it, once. That may take a while, so it comes before anything is locked.
func (in *Inbox) encode(ctx context.Context, t *task) (err error) {
	switch {
	case t.later.payload.Encoded:
		return nil
	case in.cfg.Codec == nil:
		t.later.payload.Bytes = t.msg.Payload
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	t.later.payload, err = msgrow.Encode(ctx, in.cfg.Codec, t.msg.Payload)
	return err
}

func (in *Inbox) encodeAll(ctx context.Context, tasks []*task) error {
	for _, t := range tasks {
		if t.buried != nil {
			continue
		}
		if err := in.encode(ctx, t); err != nil {
			return cmp.Or(context.Cause(ctx), outageError(err, nil))
		}
	}
	return nil
}

// decoded is the message that a row of the inbox holds.
func (in *Inbox) decoded(ctx context.Context, s *stored) (*handler.Message, error) {
	msg, payload := s.message.Message(), s.message.Payload()
	if !payload.Encoded {
		return msg, nil
	}
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	var err error
	msg.Payload, err = payload.Decode(ctx, in.cfg.Codec)
	return msg, err
}

// load reads a dead letter whose message is to be handled.
func (in *Inbox) load(ctx context.Context, id int64) (*dlq.Letter, error) {
	letter, err := in.letters.Load(ctx, in.pool, id)
	if err == nil && letter.Encoded {
		err = fmt.Errorf("%w: the payload of dead letter %d is encoded under key id %q: set Config.Codec to what it was stored with", handler.ErrCodec, id, letter.KeyID)
	}
	return letter, err
}

// checkCodec finds out at start whether the codec gives back what it was given:
// the first to find out otherwise would be a message that is needed.
func (in *Inbox) checkCodec(ctx context.Context) error {
	if in.cfg.Codec == nil {
		return nil
	}
	probe := []byte("what semel tries a codec with")
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	stored, err := msgrow.Encode(ctx, in.cfg.Codec, probe)
	if err != nil {
		return err
	}
	back, err := stored.Decode(ctx, in.cfg.Codec)
	if err == nil && !bytes.Equal(back, probe) {
		err = fmt.Errorf("%w: of what it encodes under key id %q it decodes something else", handler.ErrCodec, stored.KeyID)
	}
	return err
}

// codecError is an outage of what encodes payloads. It is [ErrOutage] too: the
// message is to come again.
type codecError struct{ error }

func (e *codecError) Unwrap() error { return e.error }

// Is reports whether target is what callers know an outage by.
func (e *codecError) Is(target error) bool { return target == ErrOutage }
