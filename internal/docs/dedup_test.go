package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who wants only the primitive compiles the primitive: a module outside of this
// one that imports dedup gets no broker client, no net/http and nothing but
// pgx and four packages of ours. The README says how many.
func TestDedup_CompilesLittle(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("go.mod", fmt.Sprintf("module example.com/shop\n\ngo 1.26\n\nrequire github.com/semel-go/semel v0.0.0\n\nreplace github.com/semel-go/semel => %s\n", here))
	write("go.sum", read(t, "go.sum"))
	write("shop.go", "package shop\n\nimport _ \"github.com/semel-go/semel/dedup\"\n")
	list := func(format string, packages ...string) []string {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-f", format}, packages...)...) //nolint:gosec // a constant
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := cmd.Output()
		require.NoError(t, err)
		return strings.Fields(string(out))
	}
	const all, foreign = `{{.ImportPath}}`, `{{if not .Standard}}{{.ImportPath}}{{end}}`

	require.False(t, slices.Contains(list(all, "."), "net/http"), "dedup compiles net/http")
	pgx := list(foreign, "github.com/jackc/pgx/v5")
	const ours = "github.com/semel-go/semel/"
	require.ElementsMatch(t,
		append([]string{"example.com/shop", ours + "dedup", ours + "internal/heapwalk", ours + "handler", ours + "schema"}, pgx...),
		list(foreign, "."))
	require.Contains(t, strings.Join(strings.Fields(read(t, "README.md")), " "),
		fmt.Sprintf("Outside the standard library that compiles %d packages: pgx with what it needs (%d), `dedup` with a helper, `handler` and `schema`.", len(pgx)+4, len(pgx)))
}
