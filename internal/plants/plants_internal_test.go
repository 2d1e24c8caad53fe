package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A plant that nobody runs proves nothing.
func TestCatalogue_KnowsEveryPlant(t *testing.T) {
	t.Parallel()

	tag := regexp.MustCompile(`(?m)^//go:build (plant_\w+)$`)
	found := map[string]bool{}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_plant.go") {
			if d != nil && d.IsDir() && path != root && path != ".." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return err
		}
		text, err := os.ReadFile(path)
		if m := tag.FindSubmatch(text); m != nil {
			found[string(m[1])] = true
		}
		return err
	}))

	var known []string
	for _, p := range catalogue() {
		known = append(known, p.tag())
		require.NotEmpty(t, p.proofs, p.name)
		require.True(t, found[p.tag()], "no file has the build tag %s", p.tag())
	}
	for name := range found {
		require.True(t, slices.Contains(known, name), "%s is planted and not in the catalogue", name)
	}
}

// module writes a module with a plant, "broken", and tests that see it or not.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/planted\n\ngo 1.26\n",
		"well.go":       "//go:build !plant_broken\n\npackage planted\n\nfunc answer() int { return 42 }\n",
		"well_plant.go": "//go:build plant_broken\n\npackage planted\n\nfunc answer() int { return 41 }\n",
		"planted_test.go": `package planted

import (
	"os"
	"testing"
)

func TestSees(t *testing.T) {
	if answer() != 42 || os.Getenv("PLANTED") != "" {
		t.Fatalf("answers %d", answer())
	}
}
func TestBlind(*testing.T)     {}
func TestFails(t *testing.T)   { t.Fatal("always") }
func TestSkipped(t *testing.T) { t.Skip("no service") }
`,
		"other/other_test.go": "package other\n\nimport \"testing\"\n\nfunc TestOther(*testing.T) {}\n",
		"other/bad_plant.go":  "//go:build plant_broken\n\npackage other\n\nfunc bad() int { return \"not a number\" }\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestProve(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		proof proof
		want  string // why it is not caught; empty: it is
	}{
		{name: "Caught", proof: proof{pkg: ".", test: "TestSees"}},
		{name: "CaughtForTheRightReason", proof: proof{pkg: ".", test: "TestSees", shows: `answers 41`}},
		{name: "CaughtInAChild", proof: proof{pkg: ".", test: "TestSees", plantEnv: "PLANTED", shows: `answers 42`}},
		{name: "WrongReason", proof: proof{pkg: ".", test: "TestSees", shows: `answers 40`}, want: "TestSees failed, but not with answers 40"},
		{name: "NotCaught", proof: proof{pkg: ".", test: "TestBlind"}, want: "TestBlind passes with it"},
		{name: "FailsAnyway", proof: proof{pkg: ".", test: "TestFails"}, want: "TestFails fails without a plant too"},
		{name: "Skipped", proof: proof{pkg: ".", test: "TestSkipped"}, want: "it was skipped"},
		{name: "NoSuchTest", proof: proof{pkg: ".", test: "TestNowhere"}, want: "no such test"},
		{name: "DoesNotCompile", proof: proof{pkg: "./other", test: "TestOther"}, want: "did not fail, it did not run"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tt.proof.dir = module(t)
			tt.proof.env = []string{"GOWORK=off", "GOFLAGS=-mod=mod"}
			var progress bytes.Buffer

			results := prove(t.Context(), []plant{{"broken", []proof{tt.proof}}}, &progress)

			require.Len(t, results, 1)
			if tt.want == "" {
				require.NoError(t, results[0].err)
				require.Equal(t, "PLANT broken caught=true by=TestSees", results[0].String())
			} else {
				require.ErrorContains(t, results[0].err, tt.want)
				require.Contains(t, results[0].String(), "PLANT broken caught=false by=")
			}
		})
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()

	all := []plant{{name: "a"}, {name: "b"}}
	chosen, err := choose(all, []string{"b"})
	require.NoError(t, err)
	require.Equal(t, all[1:], chosen)
	chosen, err = choose(all, nil)
	require.NoError(t, err)
	require.Equal(t, all, chosen)
	_, err = choose(all, []string{"c"})
	require.EqualError(t, err, `unknown plant "c"`)
}
