package inbox

import (
	"bytes"
	"context"
	"fmt"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
)

// encoded is the payload of a message as the inbox stores it. Key services may be
// slow, so it is called before a transaction holds anything, where that can be.
func (in *Inbox) encoded(ctx context.Context, msg *handler.Message) (msgrow.Payload, error) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	return msgrow.Encode(ctx, in.cfg.Codec, msg.Payload)
}

// decoded is the message that a row of the inbox holds.
func (in *Inbox) decoded(ctx context.Context, s *stored) (*handler.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	payload, err := s.message.Payload().Decode(ctx, in.cfg.Codec)
	if err != nil {
		return nil, err
	}
	msg := s.message.Message()
	msg.Payload = payload
	return msg, nil
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
	probe := &handler.Message{Payload: []byte("what semel tries a codec with")}
	stored, err := in.encoded(ctx, probe)
	if err != nil {
		return err
	}
	back, err := stored.Decode(ctx, in.cfg.Codec)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(back, probe.Payload):
		return fmt.Errorf("%w: it does not decode what it has encoded: %d bytes became %d others under key id %q",
			handler.ErrCodec, len(probe.Payload), len(back), stored.KeyID)
	}
	return nil
}

// codecError is an outage of what encodes payloads. It is [ErrOutage] too: the
// message is to come again.
type codecError struct{ error }

func (e *codecError) Unwrap() error { return e.error }

// Is reports whether target is what callers know an outage by.
func (e *codecError) Is(target error) bool { return target == ErrOutage } //nolint:errorlint // a sentinel, not a chain
