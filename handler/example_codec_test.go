package handler_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"log"

	"github.com/semel-go/semel/handler"
)

// keyring is a codec: AES-256-GCM, with the keys that are or were in use.
type keyring struct {
	keys    map[string]cipher.AEAD // by id; not changed while it is in use
	current string                 // encodes
}

// add adds a key of 32 bytes, from the service that keeps them.
func (k *keyring) add(id string, key []byte) error {
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	k.keys[id], err = cipher.NewGCM(block)
	return err
}

func (k *keyring) Encode(_ context.Context, payload []byte) (stored []byte, keyID string, err error) {
	aead := k.keys[k.current]
	nonce := make([]byte, aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, "", err
	}
	return aead.Seal(nonce, nonce, payload, []byte(k.current)), k.current, nil
}

func (k *keyring) Decode(_ context.Context, stored []byte, keyID string) ([]byte, error) {
	aead := k.keys[keyID]
	if aead == nil {
		return nil, fmt.Errorf("there is no key %q", keyID) // somebody may bring it back
	}
	n := aead.NonceSize()
	if len(stored) < n {
		return nil, handler.Permanent(errors.New("too short"))
	}
	payload, err := aead.Open(nil, stored[:n], stored[n:], []byte(keyID))
	if err != nil {
		return nil, handler.Permanent(err) // somebody has changed it: no key helps
	}
	return payload, nil
}

// A codec with AES-GCM, for inbox.Config.Codec, outbox.Writer.WithCodec and
// outbox.RelayConfig.Codec. A new key encodes from now on; what is stored under the
// old one is read for as long as that is kept.
func ExampleCodec() {
	ctx := context.Background()
	ring := &keyring{keys: map[string]cipher.AEAD{}, current: "2026-01"}
	if err := ring.add("2026-01", bytes.Repeat([]byte{1}, 32)); err != nil {
		log.Fatal(err)
	}
	var codec handler.Codec = ring
	old, oldKey, err := codec.Encode(ctx, []byte(`{"card":"4111111111111111"}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(oldKey, bytes.Contains(old, []byte("4111")))

	// A year later there is another key. First every process gets to know it; then
	// it encodes.
	if err := ring.add("2027-01", bytes.Repeat([]byte{2}, 32)); err != nil {
		log.Fatal(err)
	}
	ring.current = "2027-01"
	stored, newKey, err := codec.Encode(ctx, []byte("new"))
	if err != nil {
		log.Fatal(err)
	}
	plain, err := codec.Decode(ctx, stored, newKey)
	fmt.Println(newKey, string(plain), err)
	plain, err = codec.Decode(ctx, old, oldKey)
	fmt.Println(oldKey, string(plain), err)

	delete(ring.keys, "2026-01") // too early, if anything is still stored with it
	_, err = codec.Decode(ctx, old, oldKey)
	fmt.Println(err)
	// Output:
	// 2026-01 false
	// 2027-01 new <nil>
	// 2026-01 {"card":"4111111111111111"} <nil>
	// there is no key "2026-01"
}
