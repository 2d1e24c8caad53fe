package database

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const downloadTimeout = 5 * time.Minute

// oldestMajor is the oldest PostgreSQL that Semel runs on.
const oldestMajor = 14

// findBinaries returns the folder of the initdb and postgres to use, and what
// to call them. SEMEL_PG_VERSION (such as 18.3.0) asks for that download,
// whatever the machine has.
func findBinaries(folder string, note func(string)) (bin, about string, err error) {
	want := embeddedpostgres.PostgresVersion(os.Getenv("SEMEL_PG_VERSION"))
	if want == "" {
		for _, bin := range installed() {
			if version, err := versionOf(bin); err == nil {
				return bin, fmt.Sprintf("PostgreSQL %s from %s, started for this run", version, bin), nil
			}
		}
		want = embeddedpostgres.V17
	}
	home := filepath.Join(folder, "postgresql-"+string(want))
	bin = filepath.Join(home, "bin")
	version, err := versionOf(bin)
	if err != nil {
		note(fmt.Sprintf("downloading PostgreSQL %s (about 15 MB, once)", want))
		if err := download(want, home); err != nil {
			return "", "", err
		}
		if version, err = versionOf(bin); err != nil {
			return "", "", fmt.Errorf("run the downloaded PostgreSQL: %w", err)
		}
	}
	return bin, fmt.Sprintf("PostgreSQL %s (embedded), started for this run", version), nil
}

// installed lists folders that may hold PostgreSQL, the best first: Debian and
// Red Hat keep initdb off the PATH.
func installed() []string {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // a lone link to it lacks the neighbours
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	var packaged []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
		found, _ := filepath.Glob(pattern) // fails on a bad pattern only
		packaged = append(packaged, found...)
	}
	slices.Sort(packaged)
	slices.Reverse(packaged)
	return append(dirs, packaged...)
}

// versionOf runs the postgres in bin, as the user that is to run it.
func versionOf(bin string) (string, error) {
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output() //nolint:gosec // a folder we chose
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(out)) // postgres (PostgreSQL) 15.18 (Debian ...)
	if len(words) < 3 {
		return "", errors.New("it does not tell its version")
	}
	major, _, _ := strings.Cut(words[2], ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestMajor {
		return "", fmt.Errorf("its version is %s, the oldest that serves is %d", words[2], oldestMajor)
	}
	return words[2], nil
}

// download puts a PostgreSQL into the folder home. The library can only fetch
// and start in one call; here it fails between the two, on a locale that does
// not exist: a server started by it would outlive us.
func download(version embeddedpostgres.PostgresVersion, home string) error {
	scratch, err := os.MkdirTemp(filepath.Dir(home), "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // swept at the next start
	if err := os.Setenv("TMPDIR", scratch); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	http.DefaultClient.Timeout = downloadTimeout // the one the library uses
	fetched := filepath.Join(scratch, "fetched")
	failed := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).Port(uint32(port)).Locale("only-fetch").Logger(io.Discard). //nolint:gosec // a port
		CachePath(scratch).BinariesPath(fetched).RuntimePath(filepath.Join(scratch, "run"))).Start()
	if _, err := versionOf(filepath.Join(fetched, "bin")); err != nil {
		return fmt.Errorf("download PostgreSQL %s: %w: install PostgreSQL, or name a running server in DATABASE_URL", version, failed)
	}
	// All or nothing: a half-extracted one must not look like a whole.
	_ = os.RemoveAll(home)
	return os.Rename(fetched, home)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close() //nolint:errcheck // it accepted nothing
	return l.Addr().(*net.TCPAddr).Port, nil
}
