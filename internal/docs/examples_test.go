package docs_test

import (
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Examples are run and their output is compared. These few are only compiled:
// they need a broker that no test can start in its process.
func TestExamples_HaveOutput(t *testing.T) {
	t.Parallel()

	var run, compiled []string
	for _, file := range goFiles(t, func(file string) bool { return isExample(file) && strings.HasSuffix(file, "_test.go") }) {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ParseComments)
		require.NoError(t, err)
		for _, example := range doc.Examples(parsed) {
			name := filepath.Dir(file) + " Example" + example.Name
			if example.Output == "" {
				compiled = append(compiled, name)
				continue
			}
			run = append(run, name)
		}
	}
	require.GreaterOrEqual(t, len(run), 12)
	require.ElementsMatch(t, []string{
		"inbox ExampleInbox_Run_rabbitmq",
		"transports/rabbitmq ExampleNewPublisher",
		"transports/rabbitmq ExampleNewSource",
		"transports/rabbitmq ExamplePublisherConfig_exchangeOf",
	}, compiled)
}

// An example cannot skip itself: where no database is named, TestMain leaves it
// out. So it is in every package whose examples open one.
func TestExamples_SkippedWithoutDatabase(t *testing.T) {
	t.Parallel()

	main := map[string]bool{}
	for _, file := range goFiles(t, func(file string) bool { return strings.HasSuffix(file, "_test.go") }) {
		if strings.Contains(read(t, file), "\tservices.SkipExamples()\n") {
			main[filepath.Dir(file)] = true
		}
	}
	for _, file := range goFiles(t, isExample) {
		if strings.Contains(read(t, file), "exampledb.Open()") {
			require.True(t, main[filepath.Dir(file)], "%s opens a database: call services.SkipExamples in TestMain of its package", file)
		}
	}

	output := func(required string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-v", "-count=1", "-run", "^Example", "./dlq"}, args...)...) //nolint:gosec // constants
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "DATABASE_URL=", "CI=", "SEMEL_SERVICES="+required)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{nil, {"-skip", "^TestNone"}} {
		out, err := output("", args...)
		require.NoError(t, err, out)
		require.Contains(t, out, "SKIPPED, PROVES NOTHING: all examples, for DATABASE_URL is not set")
		require.NotContains(t, out, "=== RUN")
	}
	out, err := output("required")
	require.Error(t, err, out)
	require.Contains(t, out, "DATABASE_URL is not set")
}
