package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// accounts is how many rows the work is spread over.
const accounts = 10_000

// payloadBytes is the size of a small payment event.
const payloadBytes = 300

// noise is what payloads are filled up with. Random text, so that a broker's
// compression finds as little in it as in a topic of references and signatures.
var noise = sync.OnceValue(func() string {
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	return hex.EncodeToString(random)
})

// fresh returns a source of messages that were never seen, each about a random
// account. Its id is made when it is asked for, as a producer makes it when it
// sends.
func fresh(int) func() *handler.Message {
	return newMessage
}

func newMessage() *handler.Message { return messageOf(payloadBytes) }

// messageOf is a message whose payload has so many bytes.
func messageOf(size int) *handler.Message {
	account := strconv.Itoa(rand.IntN(accounts) + 1)
	payload := make([]byte, 0, size)
	payload = append(payload, `{"account":`...)
	payload = append(payload, account...)
	payload = append(payload, `,"amount":1,"reference":"`...)
	rest, from := size-len(payload)-len(`"}`), rand.IntN(len(noise())-size)
	payload = append(payload, noise()[from:from+rest]...)
	payload = append(payload, `"}`...)
	return &handler.Message{ID: newID(), Type: "payment.booked", Key: []byte(account), Payload: payload}
}

func newMessages(n int) []*handler.Message {
	msgs := make([]*handler.Message, n)
	for i := range msgs {
		msgs[i] = newMessage()
	}
	return msgs
}

// newID is a UUIDv7: milliseconds, then random bits.
func newID() string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[0:], uint64(time.Now().UnixMilli())<<16|uint64(rand.Uint32N(1<<16)))
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// updateAccount is the work of a handler, on all sides.
const updateAccount = `UPDATE accounts SET balance = balance + 1 WHERE id = $1`

// work books a message.
func work(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	account, err := strconv.Atoi(string(msg.Key))
	if err != nil {
		return handler.Permanent(fmt.Errorf("read the account of message %s: %w", msg.ID, err))
	}
	_, err = tx.Exec(ctx, updateAccount, account)
	return err
}
