package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	makeCommand  = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	goRunCommand = regexp.MustCompile(`\bgo run (\./[\w./-]+)((?: -\w+)*)`)
	semelCommand = regexp.MustCompile("(?m)(?:^|[`/ ])semel ((?:(?:migrate|dlq|outbox|inbox|calls)(?: [a-z]+(?:-[a-z]+)*)?)|check|doctor|relay)([^`|#\n]*)")
	aFlag        = regexp.MustCompile(`(?:^| )-([a-z]+)`)
	aLink        = regexp.MustCompile(`\]\(([^)#]+)`)
)

// documents are those that tell a person what to type.
var documents = [...]string{
	"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/design.md", "docs/failures.md", "docs/retention.md", "docs/encryption.md", "docs/calls.md", "docs/sql.md",
	"docs/choices.md", "docs/runbook.md", "docs/scaling.md", "docs/sizing.md", "docs/archive.md",
}

// Every command that the documents name exists, with its flags.
func TestCommands(t *testing.T) {
	t.Parallel()

	program := filepath.Join(t.TempDir(), "semel")
	out, err := exec.Command("go", "build", "-C", root, "-o", program, "./cmd/semel").CombinedOutput()
	require.NoError(t, err, "%s", out)
	makefile := read(t, "Makefile")

	for _, document := range documents {
		text := read(t, document)
		for _, m := range makeCommand.FindAllStringSubmatch(code(text), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
				t.Errorf("%s names make %s, which the Makefile does not have", document, m[1])
			}
		}
		for _, m := range goRunCommand.FindAllStringSubmatch(code(text), -1) {
			if m[1] != "./cmd/semel" { // that is a semelCommand
				requireFlags(t, document, m[2], "go", "run", "-C", root, m[1], "-h")
			}
		}
		for _, m := range semelCommand.FindAllStringSubmatch(code(text), -1) {
			requireFlags(t, document, m[2], program, append(strings.Fields(m[1]), "-h")...)
		}
	}
}

// Every file that the documents point to exists.
func TestLinks(t *testing.T) {
	t.Parallel()

	paths := []string{"docs/cases.md"}
	adrs, err := filepath.Glob(filepath.Join(root, "docs/adr/*.md"))
	require.NoError(t, err)
	for _, adr := range adrs {
		paths = append(paths, "docs/adr/"+filepath.Base(adr))
	}
	for _, document := range append(documents[:], paths...) {
		for _, m := range aLink.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(document), m[1])); err != nil {
				t.Errorf("%s points to %s, which is not there", document, m[1])
			}
		}
	}
}

// code is what stands in backquotes and in fenced blocks that are not Go.
func code(text string) string {
	var b strings.Builder
	for _, m := range fences.FindAllStringSubmatch(text, -1) {
		if m[1] != "go" {
			b.WriteString(m[2])
		}
	}
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		b.WriteString("\n" + m[1] + "\n")
	}
	return strings.ReplaceAll(b.String(), "go run ./cmd/semel ", "\nsemel ")
}

// requireFlags asks a command for help and looks for the flags in it.
func requireFlags(t *testing.T, document, flags, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GOWORK=") // as a person has it; make turns it off
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %s %s: %s\n%s", document, name, strings.Join(args, " "), err, out)
		return
	}
	for _, f := range aFlag.FindAllStringSubmatch(flags, -1) {
		if !regexp.MustCompile(`(?m)^\s+-` + f[1] + `\b`).Match(out) {
			t.Errorf("%s gives -%s to %s %s, which does not know it:\n%s", document, f[1], name, strings.Join(args, " "), out)
		}
	}
}
