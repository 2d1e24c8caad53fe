//go:build !linux

package crew

import (
	"os"
	"os/exec"
)

func self() (string, error) { return os.Executable() }

// dieWithUs does nothing here: a child ends with its standard input.
func dieWithUs(*exec.Cmd) {}

// Where a process cannot be frozen, what was in flight may have ended when it
// is killed a moment later.
func freeze(*os.Process) error { return nil }
func thaw(*os.Process) error   { return nil }
