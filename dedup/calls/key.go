package calls

import (
	"fmt"
	"strconv"

	"github.com/semel-go/semel/dedup"
)

// keyOf is the idempotency key of a generation of a call. What a row has already is
// kept, see [keyAgain].
func (o *Options) keyOf(c Call) (string, error) {
	c.Key = ""
	if o.Key == nil {
		return defaultKey(c), nil
	}
	key := o.Key(c)
	if key == "" || len(key) > maxKey {
		return "", fmt.Errorf("its idempotency key has %d characters; it must have 1 to %d", len(key), maxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", fmt.Errorf("character %d of its idempotency key is not printable ASCII", i+1)
		}
	}
	return key, nil
}

// defaultKey is short enough for every provider, and holds nothing of the message.
func defaultKey(c Call) string {
	return dedup.HashID([]byte(c.Consumer), c.MessageID[:], []byte(c.Step), []byte(strconv.Itoa(c.Generation))).String()
}
