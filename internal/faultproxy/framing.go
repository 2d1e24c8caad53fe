package faultproxy

import "encoding/binary"

// Framing knows where the messages of a protocol end, in either direction.
// Each function is given bytes that begin with a message and returns how long
// it is, or 0 while its length cannot be told. It is called from several
// goroutines.
type Framing struct {
	Client func(bytes []byte) int
	Server func(bytes []byte) int
}

// Postgres is PostgreSQL's protocol, without TLS: what the client sends before
// its session begins has no type byte, and its length begins with a zero.
func Postgres() Framing {
	typed := func(b []byte) int { return 1 + length(b, 1) }
	return Framing{
		Client: func(b []byte) int {
			if b[0] == 0 {
				return length(b, 0)
			}
			return typed(b)
		},
		Server: typed, // but for the one byte that answers a wish for TLS
	}
}

// AMQP is AMQP 0.9.1: frames, after a header of the client's that is none.
func AMQP() Framing {
	const header, envelope = len("AMQP\x00\x00\x09\x01"), 1 + 2 + 4 + 1
	frame := func(b []byte) int {
		if b[0] == 'A' {
			return header
		}
		return envelope + length(b, 3)
	}
	return Framing{Client: frame, Server: frame}
}

// Kafka is Kafka's protocol: requests and responses with their length before
// them.
func Kafka() Framing {
	message := func(b []byte) int { return 4 + length(b, 0) }
	return Framing{Client: message, Server: message}
}

// length reads a length of four bytes. Without all of them the message is at
// least as long as what would hold them.
func length(b []byte, at int) int {
	if len(b) < at+4 {
		return at + 4
	}
	return int(binary.BigEndian.Uint32(b[at:]))
}
