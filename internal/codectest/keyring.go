// Package codectest helps to test what is stored with a codec: a codec whose keys
// come and go, and a look for a text in all tables of a schema.
package codectest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/semel-go/semel/handler"
)

// Keyring is a codec with AES-GCM. It is safe for concurrent use.
type Keyring struct {
	mu      sync.Mutex // guards what follows
	keys    map[string]cipher.AEAD
	current string
	err     error
	asked   int
}

// New returns a keyring with keys of these ids. The last one encodes.
func New(ids ...string) *Keyring {
	k := &Keyring{keys: make(map[string]cipher.AEAD)}
	for _, id := range ids {
		k.Add(id)
	}
	return k
}

// Add adds a key, which encodes from now on.
func (k *Keyring) Add(id string) {
	key := sha256.Sum256([]byte(id))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys[id], k.current = aead, id
}

// Remove removes a key.
func (k *Keyring) Remove(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.keys, id)
}

// Fail has both directions fail with err, until it is nil.
func (k *Keyring) Fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

// Asked returns how often the keyring was asked for anything.
func (k *Keyring) Asked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// Encode implements [handler.Codec].
func (k *Keyring) Encode(_ context.Context, payload []byte) ([]byte, string, error) {
	k.mu.Lock()
	id := k.current
	k.mu.Unlock()
	aead, err := k.key(id)
	if err != nil {
		return nil, "", err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(nonce, nonce, payload, nil), id, nil
}

// Decode implements [handler.Codec].
func (k *Keyring) Decode(_ context.Context, stored []byte, keyID string) ([]byte, error) {
	aead, err := k.key(keyID)
	if err != nil {
		return nil, err
	}
	n := aead.NonceSize()
	if len(stored) < n {
		return nil, handler.Permanent(fmt.Errorf("%d bytes are too few", len(stored)))
	}
	payload, err := aead.Open(nil, stored[:n], stored[n:], nil)
	if err != nil {
		return nil, handler.Permanent(err)
	}
	return payload, nil
}

func (k *Keyring) key(id string) (cipher.AEAD, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	switch {
	case k.err != nil:
		return nil, k.err
	case k.keys[id] == nil:
		return nil, fmt.Errorf("there is no key %q", id)
	}
	return k.keys[id], nil
}
