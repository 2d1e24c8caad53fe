package docs_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
)

var updateRunbook = flag.Bool("runbook", false, "write the outputs in docs/runbook.md anew, where their shape has changed")

// step is a block of commands of the runbook, and what they print.
type step struct {
	commands []string
	output   string
}

// place is where a shell runs commands.
type place struct{ program, database, folder string }

var (
	heading  = regexp.MustCompile(`(?m)^## (.+)$`)
	stepForm = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n+```text\n(.*?)^```$")
)

// The commands of the runbook, each part of it in a database that is in the state
// that its heading names, print what stands there.
func TestRunbook(t *testing.T) {
	t.Parallel()

	if _, err := exec.LookPath("psql"); err != nil {
		services.Missing(t, "psql is not installed")
	}
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-C", root, "-o", filepath.Join(dir, "semel"), "./cmd/semel").CombinedOutput() //nolint:gosec // constants and a folder of ours
	require.NoError(t, err, "%s", out)
	page := read(t, "docs/runbook.md")
	require.Equal(t, strings.Count(page, "```sh\n"), len(stepForm.FindAllString(page, -1)), "each block of commands has its output behind it")
	titles := heading.FindAllStringSubmatch(page, -1)
	require.Len(t, symptoms, len(titles), "a symptom for each heading of docs/runbook.md, and no other")
	if *updateRunbook {
		t.Cleanup(func() { require.NoError(t, os.WriteFile(filepath.Join(root, "docs/runbook.md"), []byte(page), 0o644)) })
	}

	for _, title := range titles {
		t.Run(title[1], func(t *testing.T) {
			if !*updateRunbook {
				t.Parallel()
			}

			prepare := symptoms[title[1]]
			require.NotNil(t, prepare, "nothing brings a database into this state")
			database := newDatabase(t)
			prepare(t, newPatient(t, database))
			at := place{program: dir, database: database, folder: t.TempDir()}

			for _, m := range stepForm.FindAllStringSubmatch(part(t, page, title[0]+"\n", "\n## "), -1) {
				s := step{strings.Split(strings.TrimSpace(m[1]), "\n"), m[2]}
				if *updateRunbook {
					page = strings.Replace(page, m[0], "```sh\n"+m[1]+"```\n\n```text\n"+s.anew(t, at)+"```", 1)
					continue
				}
				s.require(t, at)
			}
		})
	}
}

// looks is a command that changes nothing.
var looks = regexp.MustCompile(`^(semel (check|doctor|calls (list|show)|(dlq|inbox|outbox) (list|show|status)|migrate (status|grants))|psql|find)\b`)

// looksOnly tells whether commands may be run again, until they see what a
// service in the background has done meanwhile.
func (s step) looksOnly() bool {
	return !slices.ContainsFunc(s.commands, func(line string) bool { return !looks.MatchString(line) })
}

func (s step) require(t *testing.T, at place) {
	t.Helper()
	want := shape(s.output)
	got := shape(s.run(t, at))
	for began := time.Now(); got != want && s.looksOnly() && time.Since(began) < time.Minute; {
		got = shape(s.run(t, at))
	}
	require.Equal(t, want, got, "%s\nafter a look at it: go test ./internal/docs -run TestRunbook -runbook", strings.Join(s.commands, "\n"))
}

// anew returns what stands in the runbook if its shape is still that, else what
// is printed now.
func (s step) anew(t *testing.T, at place) string {
	t.Helper()
	got := s.run(t, at)
	for began := time.Now(); shape(got) != shape(s.output) && s.looksOnly() && time.Since(began) < 5*time.Second; {
		got = s.run(t, at) // a service may not have done it yet
	}
	if shape(got) == shape(s.output) {
		return s.output
	}
	return got
}

// run returns all that a shell prints, with the status of what failed.
func (s step) run(t *testing.T, at place) string {
	t.Helper()
	var printed strings.Builder
	for _, line := range s.commands {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-c", line) //nolint:gosec // it stands in the runbook
		cmd.Dir = at.folder
		cmd.Env = append(os.Environ(), "DATABASE_URL="+at.database, "PATH="+at.program+":"+os.Getenv("PATH"), "KAFKA_BROKERS=", "AMQP_URL=", "PGTZ=UTC")
		out, err := cmd.CombinedOutput()
		cancel()
		if printed.Len() > 0 && len(out) > 0 {
			printed.WriteString("\n")
		}
		printed.Write(out)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			printed.WriteString("exit status " + strconv.Itoa(exit.ExitCode()) + "\n")
		} else {
			require.NoError(t, err, line)
		}
	}
	return printed.String()
}

// varying is what differs from one run to the next, and how wide a column is
// because of it.
var varying = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00)?`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h|d))+\b`), "AGE"},
	{regexp.MustCompile(`(an unknown number of|about \d+) events kept`), "N events kept"}, // known once the table was analyzed
	{regexp.MustCompile(`version \d+`), "version N"},
	{regexp.MustCompile(`\d+(\.\d+)? [kM]B`), "SIZE"},
	{regexp.MustCompile(`\S+/\d+ `), "RELAY "}, // host and process
	{regexp.MustCompile(`20\d\d/\d\d/\d\d/`), "DAY/"},
	{regexp.MustCompile(`-{3,}`), "---"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
}

func shape(text string) string {
	for _, v := range varying {
		text = v.what.ReplaceAllString(text, v.by)
	}
	return text
}
