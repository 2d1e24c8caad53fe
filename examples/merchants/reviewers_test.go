package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnswers(t *testing.T) {
	t.Parallel()

	upTo := func(n int) (a answers) {
		for i := n; i >= 1; i-- {
			a = append(a, time.Duration(i)*time.Millisecond)
		}
		return a
	}
	tests := []struct {
		name string
		a    answers
		p99  time.Duration
		late int
	}{
		{name: "None"},
		{name: "One", a: upTo(1), p99: time.Millisecond},
		{name: "Ninety", a: upTo(90), p99: 90 * time.Millisecond},
		{name: "Hundred", a: upTo(100), p99: 99 * time.Millisecond},
		{name: "ThreeHundredAndTwo", a: upTo(302), p99: 299 * time.Millisecond, late: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, tt.p99, tt.a.p99())
			require.Equal(t, tt.late, tt.a.late())
		})
	}
}
