package pgtest

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
)

// PgBouncer starts a PgBouncer in transaction mode in front of the schema and
// returns the connection string through it. Where it is not installed the test
// is skipped, or fails (see [services.Missing]). It ends with its test.
func (db *DB) PgBouncer(tb testing.TB) string {
	tb.Helper()
	return db.pgBouncer(tb, "transaction")
}

// SessionPgBouncer is [DB.PgBouncer] in session mode: a connection keeps its
// session.
func (db *DB) SessionPgBouncer(tb testing.TB) string {
	tb.Helper()
	return db.pgBouncer(tb, "session")
}

func (db *DB) pgBouncer(tb testing.TB, mode string) string {
	tb.Helper()
	bin := findPgBouncer(tb)
	server, err := pgx.ParseConfig(db.URL)
	require.NoError(tb, err)
	port := freePort(tb)
	dir, err := os.MkdirTemp("", "semel-pgbouncer-")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })

	// PgBouncer takes no search_path from its clients: it sets it itself, once on
	// each connection to the server.
	ini := fmt.Sprintf(`[databases]
semel = host=%s port=%d dbname=%s connect_query='SET search_path TO %s'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = %s
default_pool_size = 20
max_client_conn = 200
`, server.Host, server.Port, server.Database, db.Schema, port, filepath.Join(dir, "users"), mode)
	users := fmt.Sprintf("\"%s\" \"%s\"\n", doubled(server.User), doubled(server.Password))
	args := []string{filepath.Join(dir, "ini")}
	require.NoError(tb, os.WriteFile(filepath.Join(dir, "ini"), []byte(ini), 0o600))
	require.NoError(tb, os.WriteFile(filepath.Join(dir, "users"), []byte(users), 0o600))
	if os.Geteuid() == 0 { // it does not run as root
		const nobody = 65534
		for _, path := range []string{dir, filepath.Join(dir, "ini"), filepath.Join(dir, "users")} {
			require.NoError(tb, os.Chown(path, nobody, nobody))
		}
		args = append([]string{"-u", "nobody"}, args...)
	}

	var out bytes.Buffer
	cmd := exec.Command(bin, args...) //nolint:gosec // found by its name
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(tb, cmd.Start())
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-exited
	})
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for began := time.Now(); !answers(addr); {
		select {
		case <-exited:
			tb.Fatalf("start PgBouncer: it ended:\n%s", out.String())
		case <-time.After(10 * time.Millisecond):
		}
		require.Less(tb, time.Since(began), timeout, "PgBouncer does not listen")
	}
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: addr, Path: "/semel", RawQuery: "sslmode=disable",
	}).String()
}

// findPgBouncer looks beyond the PATH: packages put it where only root looks.
func findPgBouncer(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	services.Missing(tb, "pgbouncer is not installed: run 'scripts/pgbouncer.sh', or use 'make test'")
	return ""
}

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	require.NoError(tb, l.Close())
	return l.Addr().(*net.TCPAddr).Port
}

func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// doubled is text as it stands between the quotes of PgBouncer's list of users.
func doubled(text string) string { return strings.ReplaceAll(text, `"`, `""`) }
