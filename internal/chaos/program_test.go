package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the program refuses, it refuses before it starts anything.
func TestProgram_Refuses(t *testing.T) {
	t.Parallel()

	binary := filepath.Join(t.TempDir(), "chaos")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	named := []string{"DATABASE_URL=postgres://127.0.0.1:1/", "KAFKA_BROKERS=127.0.0.1:1", "AMQP_URL=amqp://127.0.0.1:1/"}
	tests := []struct {
		name string
		args []string
		env  []string
		want []string
	}{
		{name: "Flag", args: []string{"-nope"}, env: named, want: []string{"-nope", "-broker"}},
		{name: "NoKills", args: []string{"-n", "-1"}, env: named, want: []string{"-n is -1: it must not be negative"}},
		{name: "Point", args: []string{"-point", "after-lunch"}, env: named, want: []string{`unknown name "after-lunch"`, "mid-drain"}},
		{name: "Broker", args: []string{"-broker", "kafka,nats"}, env: named, want: []string{`unknown name "nats"`, "rabbitmq"}},
		{name: "Plant", args: []string{"-plant", "no-such"}, env: named, want: []string{`plant "no-such"`, "plant_no_such"}},
		{name: "NoRelays", args: []string{"-relays", "0"}, env: named, want: []string{"-relays 0: they must be positive"}},
		{name: "NoServices", want: []string{"DATABASE_URL is not set", "KAFKA_BROKERS is not set", "AMQP_URL is not set"}},
		{name: "NoBroker", args: []string{"-broker", "rabbitmq"}, env: named[:1], want: []string{"AMQP_URL is not set"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var stdout, stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), binary, tt.args...)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			cmd.Env = append(cmd.Env, tt.env...)
			for _, kept := range []string{"PATH", "HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOWORK", "GOPROXY"} {
				if value, ok := os.LookupEnv(kept); ok {
					cmd.Env = append(cmd.Env, kept+"="+value)
				}
			}

			err := cmd.Run()

			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode())
			require.Empty(t, stdout.String())
			for _, text := range tt.want {
				require.Contains(t, stderr.String(), text)
			}
		})
	}
}
