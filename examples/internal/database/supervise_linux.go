package database

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 5 * time.Second
)

// Supervise runs the supervisor of an embedded server, if that is what this
// process was started for, and reports whether it was. Call it first in main.
func Supervise() bool {
	if len(os.Args) != 3 || os.Args[1] != supervisorArg {
		return false
	}
	// Only the end of standard input ends a supervisor.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	if err := supervise(os.Args[2]); err != nil {
		say("error", strings.ReplaceAll(err.Error(), "\n", "\t"))
	}
	return true
}

func say(word, text string) { fmt.Println(word, text) }

func supervise(folder string) error {
	// The server dies with the thread that started it, see Pdeathsig.
	runtime.LockOSThread()

	alone, err := lock(filepath.Join(folder, "lock")) // two first starts must not download at once
	if err != nil {
		return err
	}
	sweep(folder)
	bin, about, err := findBinaries(folder, func(text string) { say("note", text) })
	if err != nil {
		return err
	}
	say("about", about)
	run, err := os.MkdirTemp(folder, "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(run) //nolint:errcheck // swept at the next start
	inUse, err := lock(filepath.Join(run, "lock"))
	if err != nil {
		return err
	}
	defer inUse.Close() //nolint:errcheck // held to the end
	if err := alone.Close(); err != nil {
		return err
	}

	s := &server{bin: bin, data: filepath.Join(run, "data"), password: rand.Text()}
	if err := s.init(run); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	say("ready", s.url())
	_, _ = io.Copy(io.Discard, os.Stdin) // until whoever wants the server is done, or dead
	s.stop()
	return nil
}

// lock waits for a lock that ends with this process at the latest.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in our folder
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// sweep removes what killed supervisors left behind. Those alive hold a lock.
func sweep(folder string) {
	downloads, _ := filepath.Glob(filepath.Join(folder, "download-*"))
	runs, _ := filepath.Glob(filepath.Join(folder, "run-*"))
	for _, dir := range append(downloads, runs...) {
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0o600) //nolint:gosec // in our folder
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			_ = f.Close()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = os.RemoveAll(dir)
		}
	}
}

// server is a PostgreSQL in a folder of its own, on loopback.
type server struct {
	bin, data, password string
	port                int
	cmd                 *exec.Cmd
	exited              chan struct{}
}

func (s *server) init(run string) error {
	secret := filepath.Join(run, "password")
	if err := os.WriteFile(secret, []byte(s.password), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.bin, "initdb"), "--pgdata="+s.data, "--username=semel", "--pwfile="+secret, //nolint:gosec // a folder we chose
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a database cluster with %s: %w\n%s", cmd.Path, err, out)
	}
	return os.Remove(secret)
}

// start starts the server and waits until it answers. Its port was free a
// moment ago; if somebody was faster, another one is tried.
func (s *server) start() error {
	var err error
	for range 3 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.startOnce(); err == nil {
			return nil
		}
	}
	return err
}

func (s *server) startOnce() error {
	log, err := os.Create(filepath.Join(filepath.Dir(s.data), "log"))
	if err != nil {
		return err
	}
	defer log.Close()                                                                              //nolint:errcheck // the server has its own copy
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data, "-p", fmt.Sprint(s.port), //nolint:gosec // a folder we chose
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off") // a crash of the machine takes this database with it anyway; commits stay synchronous
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} // if we are killed: stop at once
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait()
	}()
	if err := s.answers(); err != nil {
		s.stop()
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("wait for %s: %w\n%s", s.cmd.Path, err, said)
	}
	return nil
}

func (s *server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.url())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.exited:
			return errors.New("it ended")
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *server) url() string {
	return fmt.Sprintf("postgres://semel:%s@127.0.0.1:%d/postgres?sslmode=disable", s.password, s.port)
}

func (s *server) stop() {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} { // fast, at once, without a word
		_ = s.cmd.Process.Signal(sig)
		select {
		case <-s.exited:
			return
		case <-time.After(stopTimeout):
		}
	}
}
