package main_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
)

// A soak of some seconds, with every disturbance. Whether it is flat cannot be
// judged so soon on a busy machine, so the planted leak must be told from none
// by its size.
func TestSoak(t *testing.T) {
	t.Parallel()
	binary := build(t, "")

	status, out := soak(t, binary, "-for", "10s", "-rate", "100")

	require.Contains(t, []int{0, 1}, status, "%s", out)
	require.Regexp(t, `(?m)^SOAK for=10s sent=\d+ distinct=\d+ effects=\d+ dead=\d+ duplicates=\d+ lost=0 doubled=0 reordered_in_key=0 disturbances=\d+$`, out)
	require.Greater(t, field(t, out, `SOAK for=10s sent=(\d+)`), field(t, out, `SOAK for=10s .*distinct=(\d+)`))
	require.Positive(t, field(t, out, `SOAK broker=kafka .*dead=(\d+)`))
	require.Positive(t, field(t, out, `SOAK broker=rabbitmq .*dead=(\d+)`))
	require.GreaterOrEqual(t, field(t, out, `SOAK for=10s .*duplicates=(\d+)`), field(t, out, `SOAK for=10s sent=(\d+)`)-field(t, out, `SOAK for=10s .*distinct=(\d+)`))
	require.Positive(t, field(t, out, `disturbances=(\d+)`))
	require.Less(t, growth(t, out, "goroutines"), leaked)
	require.Less(t, growth(t, out, "fds"), leakedConnections)
}

// The planted leaks: a goroutine for every fifth message, a connection for
// every fiftieth.
const (
	leaked            = 70
	leakedConnections = 9
)

func TestSoak_Leak(t *testing.T) {
	t.Parallel()
	binary := build(t, "")

	for _, tt := range []struct {
		plant, resource string
		least           int
	}{
		{plant: "leak", resource: "goroutines", least: leaked},
		{plant: "leak-connection", resource: "fds", least: leakedConnections}, // the server may have ended them meanwhile,
	} {
		t.Run(tt.plant, func(t *testing.T) {
			t.Parallel()

			status, out := soak(t, binary, "-for", "10s", "-rate", "100", "-plant", tt.plant)

			require.Equal(t, 1, status, "%s", out)
			require.Regexp(t, `(?m)^SOAK resource=`+tt.resource+` .*flat=false$`, out)
			require.Contains(t, out, tt.resource+" has grown from")
			require.Contains(t, out, "the consumer leaks")
			require.GreaterOrEqual(t, growth(t, out, tt.resource), tt.least)
		})
	}
}

// Bugs of the library that its plants stand for. The second shows only when a
// drain finds messages that wait.
func TestSoak_Plant(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		plant, disturb, seen string
	}{
		{plant: "no_claim", seen: "doubled"},
		{plant: "settle_unhandled", disturb: "restart", seen: "lost"},
	} {
		t.Run(tt.plant, func(t *testing.T) {
			t.Parallel()

			status, out := soak(t, build(t, "plant_"+tt.plant), "-for", "10s", "-rate", "200", "-disturb", tt.disturb)

			require.Equal(t, 1, status, "%s", out)
			require.Positive(t, field(t, out, `SOAK for=10s .*`+tt.seen+`=(\d+)`), "%s", out)
			require.Contains(t, out, "messages were lost")
		})
	}
}

// build builds the program, with a planted bug of the library or without.
func build(t *testing.T, tags string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "soak")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags="+tags, "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// soak runs it against the test services.
func soak(t *testing.T, binary string, args ...string) (status int, out string) {
	t.Helper()
	services.Postgres(t)
	services.Kafka(t)
	services.RabbitMQ(t)
	var both bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	if _, ended := err.(*exec.ExitError); !ended { //nolint:errorlint // as it comes from Run
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), both.String()
}

func field(t *testing.T, out, pattern string) int {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(out)
	require.NotNil(t, match, "no %s in:\n%s", pattern, out)
	n, err := strconv.Atoi(match[1])
	require.NoError(t, err)
	return n
}

// growth is by how much a resource has grown between the second tenth of a
// soak and the last.
func growth(t *testing.T, out, resource string) int {
	t.Helper()
	line := `SOAK resource=` + resource + ` first=`
	return field(t, out, line+`\S+ last=(\d+)`) - field(t, out, line+`(\d+)`)
}
