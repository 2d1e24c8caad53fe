package crew

import (
	"os"
	"os/exec"
	"syscall"
)

// self is this program, also where its path is gone or closed to us.
func self() (string, error) { return "/proc/self/exe", nil }

// dieWithUs lets a process that is about to be started be killed when the
// thread that starts it ends.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error   { return p.Signal(syscall.SIGCONT) }
