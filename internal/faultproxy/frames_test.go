package faultproxy_test

import (
	"encoding/binary"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/faultproxy"
)

func TestAmbush(t *testing.T) {
	t.Parallel()

	const half = "th" // after its length, of what is sent in one write; then comes four
	tests := []struct {
		name   string
		side   faultproxy.Side
		moment faultproxy.Moment
		server string // what it got in the end
		client string // what it got in the end; the last write is answered by nobody
	}{
		{name: "ClientBefore", side: faultproxy.FromClient, moment: faultproxy.Before, server: "zero|one|two|"},
		{name: "ClientAmid", side: faultproxy.FromClient, moment: faultproxy.Amid, server: "zero|one|two|" + half},
		{name: "ClientAfter", side: faultproxy.FromClient, moment: faultproxy.After, server: "zero|one|two|thirteen|"},
		{name: "ServerBefore", side: faultproxy.FromServer, moment: faultproxy.Before, client: "one|two|"},
		{name: "ServerAmid", side: faultproxy.FromServer, moment: faultproxy.Amid, client: "one|two|" + half},
		{name: "ServerAfter", side: faultproxy.FromServer, moment: faultproxy.After, client: "one|two|thirteen|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			p, server := setupFramed(t)
			conn, other := dial(t, p), dial(t, p)
			_, err := conn.Write(frames("zero"))
			require.NoError(t, err)
			require.Equal(t, "zero|", readFrames(t, io.LimitReader(conn, int64(len(frames("zero"))))))

			notTwo := func(frame []byte) bool { return string(frame[4:]) != "two" }
			ambush := p.Ambush(tt.side, 2, tt.moment, notTwo)
			_, err = conn.Write(frames("one", "two", "thirteen", "four"))
			require.NoError(t, err)
			got, err := io.ReadAll(conn)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is still open")
			select {
			case <-ambush.Sprung():
			case <-time.After(patience):
				require.Fail(t, "the ambush was not sprung")
			}

			require.Equal(t, 2, ambush.Count(), "two does not count, and four never came")
			require.Equal(t, tt.client, readFrames(t, strings.NewReader(string(got))))
			if tt.side == faultproxy.FromClient {
				require.Eventually(t, func() bool { return readFrames(t, strings.NewReader(server.lines())) == tt.server }, patience, time.Millisecond)
			}
			_, err = other.Write(frames("other", "thirteen")) // only the one connection, and only once
			require.NoError(t, err)
			require.Equal(t, "other|thirteen|", readFrames(t, io.LimitReader(other, int64(len(frames("other", "thirteen"))))))
		})
	}
}

// A frame in many packets is one, and an ambush at 0 only counts.
func TestAmbush_Counts(t *testing.T) {
	t.Parallel()

	p, _ := setupFramed(t)
	conn := dial(t, p)
	ambush := p.Ambush(faultproxy.FromClient, 0, faultproxy.Before, nil)
	sent := frames("one", "two")
	for _, b := range sent {
		_, err := conn.Write([]byte{b})
		require.NoError(t, err)
	}
	require.Equal(t, "one|two|", readFrames(t, io.LimitReader(conn, int64(len(sent)))))
	require.Equal(t, 2, ambush.Count())

	p.Lift()
	_, err := conn.Write(sent)
	require.NoError(t, err)
	require.Equal(t, "one|two|", readFrames(t, io.LimitReader(conn, int64(len(sent)))))
	require.Equal(t, 2, ambush.Count())
}

func TestFraming(t *testing.T) {
	t.Parallel()

	postgres, amqp := faultproxy.Postgres(), faultproxy.AMQP()
	tests := []struct {
		name  string
		size  func([]byte) int
		bytes string
		want  int
	}{
		{name: "PostgresStartup", size: postgres.Client, bytes: "\x00\x00\x00\x08\x04\xd2\x16\x2f" + "more", want: 8},
		{name: "PostgresQuery", size: postgres.Client, bytes: "Q\x00\x00\x00\x09text\x00" + "more", want: 10},
		{name: "PostgresSync", size: postgres.Client, bytes: "S\x00\x00\x00\x04", want: 5},
		{name: "PostgresReady", size: postgres.Server, bytes: "Z\x00\x00\x00\x05T", want: 6},
		{name: "AMQPHeader", size: amqp.Client, bytes: "AMQP\x00\x00\x09\x01" + "more", want: 8},
		{name: "AMQPFrame", size: amqp.Server, bytes: "\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x33\xce" + "more", want: 12},
		{name: "KafkaRequest", size: faultproxy.Kafka().Client, bytes: "\x00\x00\x00\x02\x00\x12", want: 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.want, tt.size([]byte(tt.bytes)))
			for short := 1; short < 4; short++ {
				require.Greater(t, tt.size([]byte(tt.bytes[:short])), short, "it is not all there")
			}
		})
	}
}

// setupFramed is setup with frames that have their length before them.
func setupFramed(t *testing.T) (*faultproxy.Proxy, *echo) {
	t.Helper()
	plain, server := setup(t)
	return faultproxy.NewFramed(t, plain.Addr(), faultproxy.Kafka()), server
}

func frames(texts ...string) []byte {
	var b []byte
	for _, text := range texts {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
	}
	return b
}

// readFrames returns the texts with | after each one that is whole.
func readFrames(t *testing.T, r io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(r)
	require.NoError(t, err)
	var text []byte
	for len(all) >= 4 {
		end := 4 + int(binary.BigEndian.Uint32(all))
		text = append(text, all[4:min(end, len(all))]...)
		if end > len(all) {
			break
		}
		text = append(text, '|')
		all = slices.Delete(all, 0, end)
	}
	return string(text)
}
