package campaign

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// The children's programs.
const (
	consumerProgram = "github.com/semel-go/semel/internal/chaos/child"
	relayProgram    = "github.com/semel-go/semel/internal/chaos/relay"
	callerProgram   = "github.com/semel-go/semel/internal/chaos/caller"
	archiverProgram = "github.com/semel-go/semel/internal/chaos/archiver"

	// providerProgram is what the callers call. Bugs are never planted in it.
	providerProgram = "github.com/semel-go/semel/internal/provider/simulator"
)

// programOf is the program that consumes from a broker.
func programOf(b wire.Broker) string {
	switch b {
	case wire.Calls:
		return callerProgram
	case wire.Archive:
		return archiverProgram
	}
	return consumerProgram
}

// buildAll builds what a campaign needs. A plant that changes none of it, or that
// nobody knows, is an error.
func (c Config) buildAll(ctx context.Context, dir string) (binaries map[string]string, err error) {
	binaries = map[string]string{}
	for _, b := range c.Brokers {
		program := programOf(b)
		if binaries[program] != "" {
			continue
		}
		if binaries[program], err = build(ctx, dir, program, c.Plant); err != nil {
			return nil, err
		}
	}
	if slices.Contains(c.Brokers, wire.Calls) {
		binaries[providerProgram], err = build(ctx, dir, providerProgram, "")
	}
	return binaries, err
}

// leaveOut leaves out brokers whose program a plant does not change, unless it
// changes none.
func (c Config) leaveOut(ctx context.Context) ([]wire.Broker, error) {
	if c.Plant == "" {
		return c.Brokers, nil
	}
	changed := map[string]bool{}
	for _, program := range []string{consumerProgram, callerProgram, archiverProgram} {
		var err error
		if changed[program], err = planted(ctx, program, c.Plant); err != nil {
			return nil, err
		}
	}
	var left []wire.Broker
	for _, b := range c.Brokers {
		if changed[programOf(b)] {
			left = append(left, b)
		}
	}
	if len(left) == 0 {
		return c.Brokers, nil
	}
	return left, nil
}

// build builds the children's program into dir, with a planted bug or without.
func build(ctx context.Context, dir, program, plant string) (binary string, err error) {
	if plant != "" {
		changes, err := planted(ctx, program, plant)
		switch {
		case err != nil:
			return "", err
		case !changes: // a mistyped plant would prove that all is well
			return "", fmt.Errorf("plant %q: no file that %s is built from has the build tag %s", plant, path.Base(program), tagOf(plant))
		}
	}
	binary = filepath.Join(dir, path.Base(program))
	_, err = goTool(ctx, "build", "-tags="+tagOf(plant), "-o", binary, program)
	return binary, err
}

func tagOf(plant string) string {
	if plant == "" {
		return ""
	}
	return "plant_" + strings.ReplaceAll(plant, "-", "_")
}

// planted reports whether a plant changes the program.
func planted(ctx context.Context, program, plant string) (bool, error) {
	const files = `{{range .GoFiles}}{{$.ImportPath}}/{{.}}{{"\n"}}{{end}}`
	plain, err := goTool(ctx, "list", "-deps", "-f", files, program)
	if err != nil {
		return false, err
	}
	tagged, err := goTool(ctx, "list", "-deps", "-tags="+tagOf(plant), "-f", files, program)
	return plain != tagged, err
}

// PlantsRelay reports whether a plant is one of relays.
func PlantsRelay(ctx context.Context, plant string) (bool, error) {
	return planted(ctx, relayProgram, plant)
}

func goTool(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, stderr.String())
	}
	return stdout.String(), nil
}
