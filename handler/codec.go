package handler

import (
	"context"
	"errors"
)

// Codec makes payloads unreadable while they are stored, in the inbox, in the
// dead letters and in the outbox: whoever reads the tables, or a backup of
// them, sees none. Handlers and publishers see what was before.
//
// Only payloads are encoded. Ids, types, keys, headers and the texts of errors
// are stored as they are, because people and the engine look for them.
//
// It must be safe for concurrent use, and quick: it may be called while a
// transaction is open. Where keys come from a service, keep them for a while.
// ctx bounds the wait for one.
type Codec interface {
	// Encode returns payload as it is to be stored, and the id of the key it
	// took: text of at most 255 bytes, kept beside the payload for everybody to
	// see. payload may be empty; it is never nil, since a tombstone stays one.
	// It must be left as it is, and what is returned must not change later.
	//
	// What cannot be encoded is not stored: its message stays unsettled and the
	// writer of an event gets the error. The error must not hold the payload.
	Encode(ctx context.Context, payload []byte) (stored []byte, keyID string, err error)

	// Decode returns the payload that Encode stored under this key id, perhaps
	// long ago: an old key is needed for as long as something is stored with it.
	//
	// An error marked by [Unavailable] says that the key cannot be had now; one
	// marked by [Permanent] that no key will ever help. Nothing is lost by either.
	Decode(ctx context.Context, stored []byte, keyID string) (payload []byte, err error)
}

// ErrCodec is wrapped by the error of a payload that could not be encoded or
// decoded: the [Codec] said no, or there is none.
var ErrCodec = errors.New("codec of stored payloads")

// HeaderKeyID is the header of a stored message, in the tables only, that names
// the key of its payload. It is taken off again before anybody gets the message.
// A header of this name from outside is a header like any other: the tables tell
// the two apart by the tag, in which ours has an asterisk and no other can.
const HeaderKeyID = "semel-key-id"
