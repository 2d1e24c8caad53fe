package main

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/services"
)

func TestResult_Line(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		value  float64
		target target
		want   string
	}{
		{name: "AtTheLeast", value: 0.9, target: atLeast(0.9), want: "BENCH a.b 0.90 (target >= 0.9: met; 5 pairs)"},
		{name: "AsPrinted", value: 0.8999, target: atLeast(0.9), want: "BENCH a.b 0.90 (target >= 0.9: met; 5 pairs)"},
		{name: "BelowTheLeast", value: 0.89, target: atLeast(0.9), want: "BENCH a.b 0.89 (target >= 0.9: missed; 5 pairs)"},
		{name: "AtTheMost", value: 12, target: atMost(12), want: "BENCH a.b 12.00 (target <= 12: met; 5 pairs)"},
		{name: "NoTarget", value: 0.5, target: noTarget(), want: "BENCH a.b 0.50 (no target; 5 pairs)"},
		{name: "AboveTheMost", value: 12.25, target: atMost(12), want: "BENCH a.b 12.25 (target <= 12: missed; 5 pairs)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := result{value: tt.value, digits: 2, details: []string{"5 pairs"}}

			require.Equal(t, tt.want, r.line("a.b", tt.target))
		})
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()

	require.InDelta(t, 2, median([]float64{9, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{9, 1, 2, 3}), 0)
}

// A slow machine that gets slower: the ratio of what is measured in one pair
// stays, and neither side always comes first.
func TestPairs_ComparesWithinAPair(t *testing.T) {
	t.Parallel()

	var order strings.Builder
	pace := 1024.0
	measured := func(name string, factor float64) side {
		return side{name, func(context.Context) (float64, error) {
			order.WriteString(name)
			if order.Len()%2 == 1 { // a new pair
				pace /= 2
			}
			return pace * factor, nil
		}}
	}

	r, err := (&bench{rounds: 3}).pairs(t.Context(), measured("a", 3), measured("b", 2))

	require.NoError(t, err)
	require.InDelta(t, 1.5, r.value, 1e-9)
	require.Equal(t, "abbaab", order.String())
}

func TestCompare_Difference(t *testing.T) {
	t.Parallel()

	number := func(n float64) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) { return n, nil }
	}

	r, err := (&bench{rounds: 2}).compare(t.Context(), difference("%.1f ms"), side{"a", number(3)}, side{"b", number(1.25)})

	require.NoError(t, err)
	require.Equal(t, "BENCH x 1.75 (target <= 2: met; min 1.75, max 1.75 of 2 pairs; [a 3.0 ms, b 1.2 ms])", r.line("x", atMost(2)))
}

// Ids are stored as they are and rise with time: that is what row.bytes is about.
func TestNewID(t *testing.T) {
	t.Parallel()

	id := newID()
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
	require.Equal(t, id, dedup.MessageID(id).String())
	require.NotEqual(t, id, newID())
	require.Eventually(t, func() bool { return newID()[:13] > id[:13] }, time.Second, time.Millisecond)
}

func TestNewMessage_HasItsSize(t *testing.T) {
	t.Parallel()

	require.Len(t, newMessage().Payload, payloadBytes)
	require.Len(t, messageOf(largePayload).Payload, largePayload)
}

// A round trip begins with a write that follows an answer: that one waits, the
// rest of the same request does not.
func TestDelayedConn(t *testing.T) {
	t.Parallel()

	near, far := net.Pipe()
	c := &delayedConn{Conn: near}
	defer func() { _ = near.Close() }()
	go func() { // answers every second byte
		buffer := make([]byte, 1)
		for {
			for range 2 {
				if _, err := far.Read(buffer); err != nil {
					return
				}
			}
			if _, err := far.Write(buffer); err != nil {
				return
			}
		}
	}()

	buffer := make([]byte, 1)
	const trips = 100
	began := time.Now()
	for range trips {
		for range 2 {
			_, err := c.Write(buffer)
			require.NoError(t, err)
			require.False(t, c.answered.Load())
		}
		_, err := c.Read(buffer)
		require.NoError(t, err)
		require.True(t, c.answered.Load())
	}
	require.GreaterOrEqual(t, time.Since(began), (trips-1)*tripDelay) // nothing was answered before the first
}

// A short run prints its line, and its number is near the true one: the pages
// of a small table are not full.
func TestRun(t *testing.T) {
	services.Postgres(t)
	var stdout, stderr bytes.Buffer

	err := run(t.Context(), []string{"-run", `^row\.bytes$|^engine\.allocs$|^size\.`, "-rounds", "1", "-rows", "2000", "-sized", "2000"}, &stdout, &stderr)

	require.NoError(t, err, stderr.String())
	require.Regexp(t, `(?m)^# PostgreSQL .*fsync=on, synchronous_commit=on`, stdout.String())
	require.Regexp(t, `(?m)^BENCH row\.bytes [0-9]+\.[0-9] \(target <= 115: .*2000 rows`, stdout.String())
	require.Regexp(t, `(?m)^BENCH engine\.allocs [0-9.]+ \(target <= 12: `, stdout.String())
	for _, name := range []string{"event_300", "event_2k", "stored_300", "stored_2k"} {
		require.Regexp(t, `(?m)^BENCH size\.`+name+` [0-9]+ \(no target; 2000 (events|messages) with (300|2048) bytes`, stdout.String())
	}
	require.Equal(t, 7, strings.Count(stdout.String(), "\n"), stdout.String())
}

func TestRun_BadFlags(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		args []string
		want *regexp.Regexp
	}{
		{name: "Pattern", args: []string{"-run", "("}, want: regexp.MustCompile(`read -run: .*missing closing`)},
		{name: "NoRounds", args: []string{"-rounds", "0"}, want: regexp.MustCompile(`-rounds must be at least 1`)},
		{name: "FewEvents", args: []string{"-events", "9999"}, want: regexp.MustCompile(`-events and -pending at least 10000`)},
		{name: "ShortRound", args: []string{"-for", "10ms"}, want: regexp.MustCompile(`-for at least 1s`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var out bytes.Buffer
			err := run(t.Context(), tt.args, &out, &out)

			require.Error(t, err)
			require.Regexp(t, tt.want, err.Error())
		})
	}
}
