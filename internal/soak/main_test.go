package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the program refuses, it refuses before it starts anything.
func TestProgram_Refuses(t *testing.T) {
	t.Parallel()

	binary := build(t, "")
	named := []string{"DATABASE_URL=postgres://127.0.0.1:1/", "KAFKA_BROKERS=127.0.0.1:1", "AMQP_URL=amqp://127.0.0.1:1/"}
	tests := []struct {
		name string
		args []string
		env  []string
		want []string
	}{
		{name: "Flag", args: []string{"-nope"}, env: named, want: []string{"-nope", "-rate"}},
		{name: "Argument", args: []string{"1h"}, env: named, want: []string{`"1h" is no flag`}},
		{name: "TooShort", args: []string{"-for", "1s"}, env: named, want: []string{"-for is 1s: it must be at least 5s"}},
		{name: "Rate", args: []string{"-rate", "0"}, env: named, want: []string{"-rate is 0: it must be from 20 to 10000"}},
		{name: "Plant", args: []string{"-plant", "weed"}, env: named, want: []string{`-plant is "weed"`, `"leak-connection"`}},
		{name: "Disturb", args: []string{"-disturb", "cut,nap"}, env: named, want: []string{`-disturb: unknown name "nap"`, "freeze,restart"}},
		{name: "NoServices", want: []string{"DATABASE_URL is not set", "KAFKA_BROKERS is not set", "AMQP_URL is not set"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var stdout, stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), binary, tt.args...)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, tt.env...)

			err := cmd.Run()

			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 2, exit.ExitCode())
			require.Empty(t, stdout.String())
			for _, text := range tt.want {
				require.Contains(t, stderr.String(), text)
			}
		})
	}
}
