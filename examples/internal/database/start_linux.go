package database

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A server of our own is started by a supervisor: this program again, with a
// hidden first argument. It is a process of its own for two reasons. PostgreSQL
// refuses to run as root, so root's supervisor is another user; and it sees the
// end of its standard input when we end, by whatever means, SIGKILL included.
const supervisorArg = "__postgres"

// nobody is who runs the server for root.
const nobody = 65534

// start starts a supervisor and waits for its server.
func start(ctx context.Context, note func(string)) (*Server, error) {
	folder, err := chooseFolder()
	if err != nil {
		return nil, fmt.Errorf("make a folder for the embedded PostgreSQL: %w: name a writable one in SEMEL_PG_DIR, or a running server in DATABASE_URL", err)
	}
	// Not the path of the program: go run puts it where no other user gets.
	cmd := exec.Command("/proc/self/exe", supervisorArg, folder) //nolint:gosec // ourselves
	cmd.Dir, cmd.Env = folder, environment(folder)
	cmd.SysProcAttr = identity()
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, fmt.Errorf("start the embedded PostgreSQL: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded PostgreSQL as an unprivileged user in %s: %w: name a folder that every user can reach in SEMEL_PG_DIR, or a running server in DATABASE_URL", folder, err)
	}
	stop := func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	kill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // the server goes with it
	s, err := await(bufio.NewScanner(out), note)
	if !kill() {
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("start the embedded PostgreSQL: %w", err)
	}
	s.stop = stop
	return s, nil
}

// identity is who the supervisor runs as.
func identity() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal is for us; we tell it
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	} else if _, err := user.LookupId(strconv.Itoa(uid)); err != nil {
		// A user without a name, as containers have them. initdb insists on a
		// name: in a namespace of its own it sees nobody's.
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: gid, Size: 1}}
	}
	return attr
}

// await reads what the supervisor says, line by line: "note", "error" or
// "about" and a text, at last "ready" and the URL.
func await(lines *bufio.Scanner, note func(string)) (*Server, error) {
	s := &Server{Own: true}
	for lines.Scan() {
		switch word, text, _ := strings.Cut(lines.Text(), " "); word {
		case "note":
			note(text)
		case "about":
			s.About = text
		case "error":
			return nil, errors.New(strings.ReplaceAll(text, "\t", "\n"))
		case "ready":
			s.URL = text
			return s, nil
		}
	}
	return nil, errors.New("its supervisor ended without a word")
}

// chooseFolder returns a folder for downloads and data that the user of the
// server can use and no other user can.
func chooseFolder() (string, error) {
	uid := os.Geteuid()
	owner := uid
	if uid == 0 {
		owner = nobody
	}
	var choices []string
	switch dir := os.Getenv("SEMEL_PG_DIR"); {
	case dir != "":
		choices = []string{dir}
	case uid == 0:
		choices = []string{"/var/cache/semel-postgres", "/var/tmp/semel-postgres-0"} // root's own cache is closed to others
	default:
		if cache, err := os.UserCacheDir(); err == nil { // not where HOME is unset
			choices = append(choices, filepath.Join(cache, "semel-postgres"))
		}
		choices = append(choices, filepath.Join(os.TempDir(), fmt.Sprintf("semel-postgres-%d", uid)))
	}
	var errs []error
	for _, dir := range choices {
		err := prepareFolder(dir, owner)
		if err == nil {
			return filepath.Abs(dir)
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

func prepareFolder(dir string, owner int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || (int(is.Uid) != os.Geteuid() && int(is.Uid) != owner) {
		return fmt.Errorf("%s belongs to somebody else", dir) // anybody may make folders in /tmp
	}
	if err := os.Chown(dir, owner, -1); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a folder
}

// environment is ours without what would confuse initdb and postgres.
func environment(folder string) []string {
	env := []string{"HOME=" + folder, "LC_ALL=C"}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && name != "LANG" && name != "HOME" && name != "TMPDIR" {
			env = append(env, kv)
		}
	}
	return env
}
