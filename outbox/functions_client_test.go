package outbox_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
)

// What docs/sql.md shows for psql and for Python runs as it stands there, in a
// process of its own, and the event is published.
func TestFunctions_FromOtherLanguages(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, language string
		command        func(t *testing.T, url string) []string
	}{
		{"Psql", "sql", psql},
		{"Python", "python", python},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			url := searchPathAsOption(b.URL)
			command := tt.command(t, url)
			p := &recorder{}
			b.relay(t, p, quick())
			b.exec(t, `CREATE TABLE orders (id text PRIMARY KEY, status text NOT NULL)`)
			b.exec(t, `INSERT INTO orders VALUES ('ORD-1', 'NEW')`)

			run := func(program string) (string, error) {
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...) //nolint:gosec // found by its name
				cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
				cmd.Stdin = strings.NewReader(strings.ReplaceAll(program, "semel.", b.Schema+"."))
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			program := example(t, tt.language)
			out, err := run(program)
			require.NoError(t, err, out)

			b.awaitPublished(t, 1)
			msg := p.messages()[0]
			require.Contains(t, out, msg.ID, "the id is the function's answer")
			require.Equal(t, "OrderPaid", msg.Type)
			require.Equal(t, "ORD-1", string(msg.Key))
			require.Equal(t, "application/json", msg.ContentType)
			require.Equal(t, "req-7", msg.CorrelationID)
			require.JSONEq(t, `{"id": "ORD-1"}`, string(msg.Payload))
			require.Equal(t, "PAID", query[string](t, b, `SELECT status FROM orders`))

			out, err = run(strings.ReplaceAll(program, "'OrderPaid'", "''"))
			require.Error(t, err, out)
			require.Contains(t, out, "unusable event: event_type is empty")
			require.Contains(t, out, "HINT:  Say it: consumers need it.")
			require.Equal(t, int64(1), query[int64](t, b, `SELECT count(*) FROM outbox`))
		})
	}
}

// example is the one block of docs/sql.md in this language.
func example(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/sql.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 1)
	return blocks[0][1]
}

// searchPathAsOption is a connection string for clients of libpq, which know no
// parameter search_path.
func searchPathAsOption(url string) string {
	return regexp.MustCompile(`\bsearch_path=(\w+)`).ReplaceAllString(url, "options=-csearch_path%3D$1")
}

func psql(t *testing.T, url string) []string {
	t.Helper()
	path, err := exec.LookPath("psql")
	if err != nil {
		services.Missing(t, "psql is not installed")
	}
	return []string{path, "-X", "-v", "ON_ERROR_STOP=1", "-d", url}
}

// python finds the Python that has Psycopg: the system's, or the first on the PATH.
func python(t *testing.T, _ string) []string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import psycopg2").Run() == nil { //nolint:gosec // one of two constants
			return []string{name, "-"}
		}
	}
	services.Missing(t, "no Python with Psycopg 2 is installed: run 'scripts/psycopg.sh', or use 'make test'")
	return nil
}
