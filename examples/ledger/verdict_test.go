package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResult_Verdict(t *testing.T) {
	t.Parallel()
	idle := []share{{"all", 120}, {"PostgreSQL", 70}, {"the relays", 50}}
	busy := []share{{"all", 195}, {"PostgreSQL", 60}, {"the relays", 135}}

	tests := []struct {
		name   string
		counts counts
		kills  int
		writer news
		shares []share
		want   string
	}{
		{name: "Reached", counts: counts{written: 60_000, published: 60_000, took: 10 * time.Second}, writer: news{Took: 10 * time.Second}, shares: busy},
		{
			name: "WriterWaits", counts: counts{written: 30_000, published: 30_000, took: 15 * time.Second},
			writer: news{Took: 15 * time.Second, Busy: 14 * time.Second}, shares: idle,
			want: "2000 of 6000 events a second: the writer was behind, each of its connections in a transaction for 93 % of the time. " +
				"The processors had time left: it waited for locks, for a disk, or for answers.",
		},
		{
			name: "WriterALittleLate", counts: counts{written: 60_000, published: 60_000, took: 10300 * time.Millisecond},
			writer: news{Took: 10300 * time.Millisecond, Busy: 10 * time.Second}, shares: busy,
			want: "5825 of 6000 events a second: the writer was behind, each of its connections in a transaction for 97 % of the time. " +
				"The processors were busy, and are what saturates; the most, 135 % of one, went to: the relays.",
		},
		{
			name: "RelaysCompute", counts: counts{written: 60_000, published: 60_000, took: 20 * time.Second},
			writer: news{Took: 10 * time.Second, Busy: 5 * time.Second}, shares: busy,
			want: "3000 of 6000 events a second: the relays were behind: they needed 20.0 s for what was written in 10.0 s. " +
				"The processors were busy, and are what saturates; the most, 135 % of one, went to: the relays.",
		},
		{
			name: "Killed", counts: counts{written: 60_000, published: 60_000, took: 20 * time.Second}, kills: 1,
			writer: news{Took: 10 * time.Second, Busy: 5 * time.Second}, shares: busy,
			want: "3000 of 6000 events a second: the relays were behind: they needed 20.0 s for what was written in 10.0 s. " +
				"One was killed, and its events waited for its lease of 10s.",
		},
		{
			name: "NoProc", counts: counts{written: 60_000, published: 60_000, took: 20 * time.Second}, writer: news{Took: 10 * time.Second},
			want: "3000 of 6000 events a second: the relays were behind: they needed 20.0 s for what was written in 10.0 s.",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sum := result{counts: tt.counts, offered: 6000, length: 10 * time.Second, kills: tt.kills}

			require.Equal(t, tt.want, sum.verdict(tt.writer, tt.shares, 2))
		})
	}
}
