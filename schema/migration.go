package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Version is the newest migration this binary knows, and the one it needs.
const Version = 7

//go:embed migrations/*.sql
var files embed.FS

// Migrations returns the migration files, for those who run them with a tool
// of their own. They say "semel.table", see [Qualify].
func Migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // only a path that is no path; ours is a constant
	}
	return sub
}

// Migration is one step of the schema.
type Migration struct {
	// Version numbers the steps from 1 on.
	Version int

	// Name says what the step does.
	Name string

	// OldestBinary is the oldest [Version] a program may have been built with
	// and still run once this step is applied.
	OldestBinary int

	// Applied reports that it is applied.
	Applied bool

	// AppliedAt is when it was applied; zero while it is not, and where somebody
	// has changed that by hand to what is no time.
	AppliedAt time.Time

	up, down string // empty for a step that only a newer binary knows
}

var (
	// fileName is "0001_create_tables.up.sql".
	fileName = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.up\.sql$`)

	// oldestBinary is the first line of a migration.
	oldestBinary = regexp.MustCompile(`\A-- semel: oldest-binary (\d+)\n`)
)

// embedded returns the migrations of this binary, oldest first.
func embedded() ([]Migration, error) {
	names, err := fs.Glob(files, "migrations/*.up.sql")
	if err != nil {
		return nil, err
	}
	var all []Migration
	for _, name := range names { // Glob sorts
		m, err := parse(name)
		if err != nil {
			return nil, fmt.Errorf("read migration %s: %w", name, err)
		}
		if m.Version != len(all)+1 {
			return nil, fmt.Errorf("read migration %s: version %d is missing", name, len(all)+1)
		}
		all = append(all, m)
	}
	return all, nil
}

func parse(name string) (Migration, error) {
	parts := fileName.FindStringSubmatch(path.Base(name))
	if parts == nil {
		return Migration{}, fmt.Errorf("its name is not of the form %s", fileName)
	}
	up, err := fs.ReadFile(files, name)
	if err != nil {
		return Migration{}, err
	}
	down, err := fs.ReadFile(files, strings.TrimSuffix(name, ".up.sql")+".down.sql")
	if err != nil {
		return Migration{}, err
	}
	header := oldestBinary.FindSubmatch(up)
	if header == nil {
		return Migration{}, fmt.Errorf("its first line is not of the form %s", oldestBinary)
	}
	version, err := strconv.Atoi(parts[1])
	if err != nil {
		return Migration{}, err
	}
	oldest, err := strconv.Atoi(string(header[1]))
	if err != nil {
		return Migration{}, err
	}
	return Migration{Version: version, Name: parts[2], OldestBinary: oldest, up: string(up), down: string(down)}, nil
}
