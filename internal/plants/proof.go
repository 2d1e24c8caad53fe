package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// proof is a test that must fail with a plant and pass without.
type proof struct {
	dir  string // where the go command runs; empty: here
	pkg  string
	test string
	env  []string

	// plantEnv, if set, is the variable that brings the plant into child
	// processes; else the test itself is built with it.
	plantEnv string

	// shows, if set, is what the failing test must print: that it failed for
	// the right reason.
	shows string
}

// tries is how often a proof may miss a plant before that counts: where a kill
// lands, and which of two comes first, is chance.
const tries = 8

// unit is a test that is built with the plant.
func unit(pkg, test string) proof { return proof{pkg: pkg, test: test} }

// chaos kills consumers that are built with the plant; afterwards counter must
// not be 0.
func chaos(broker, point string, kills int, counter string) proof {
	return proof{
		pkg: "./internal/chaos", test: "TestChaos", plantEnv: "CHAOS_PLANT",
		env:   []string{"CHAOS_BROKER=" + broker, "CHAOS_POINT=" + point, "CHAOS_KILLS=" + strconv.Itoa(kills)},
		shows: `(?m)CHAOS kills=.* ` + counter + `=[1-9]`,
	}
}

// relays kills relays that are built with the plant; afterwards counter must not
// be 0.
func relays(point, counter string) proof {
	return proof{
		pkg: "./internal/chaos", test: "TestChaos_Relays", plantEnv: "CHAOS_PLANT",
		env:   []string{"CHAOS_POINT=" + point},
		shows: `(?m)CHAOS broker=.* ` + counter + `=[1-9]`,
	}
}

// clients kills clients of a provider that are built with the plant; afterwards
// something must have been done twice there.
func clients(point string, kills int) proof {
	return proof{
		pkg: "./internal/chaos", test: "TestChaos_Calls", plantEnv: "CHAOS_PLANT",
		env:   []string{"CHAOS_POINT=" + point, "CHAOS_KILLS=" + strconv.Itoa(kills)},
		shows: `(?m)CHAOS kills=.* doubled=[1-9]`,
	}
}

// archives kills purges that archive, and are built with the plant; afterwards
// something must be lost.
func archives(point string) proof {
	return proof{
		pkg: "./internal/chaos", test: "TestChaos_Archive", plantEnv: "CHAOS_PLANT",
		env:   []string{"CHAOS_POINT=" + point},
		shows: `(?m)CHAOS kills=.* lost=[1-9]`,
	}
}

// String names the proof; those of the same name do the same without a plant.
func (p proof) String() string { return strings.Join(append([]string{p.pkg, p.test}, p.env...), " ") }

// passes runs the proof without a plant. An error says why it is none.
func (p proof) passes(ctx context.Context) error {
	if out, err := p.run(ctx, nil, nil); err != nil {
		return fmt.Errorf("%s fails without a plant too: %w\n%s", p.test, err, out)
	}
	return nil
}

// catches runs the proof with a plant. An error says why it was not caught; a
// test that does not compile, is skipped, or fails for another reason has
// caught nothing.
func (p proof) catches(ctx context.Context, pl plant) error {
	args, env := []string{"-tags=" + pl.tag()}, []string(nil)
	if p.plantEnv != "" {
		args, env = nil, []string{p.plantEnv + "=" + pl.name}
	}
	failed := regexp.MustCompile(`(?m)^\s*--- FAIL: ` + p.test + `\b`)
	var missed error
	for range tries {
		out, err := p.run(ctx, args, env)
		switch {
		case err == nil:
			missed = fmt.Errorf("%s passes with it", p.test)
		case !failed.MatchString(out):
			return fmt.Errorf("%s did not fail, it did not run: %w\n%s", p.test, err, out)
		case p.shows != "" && !regexp.MustCompile(p.shows).MatchString(out):
			missed = fmt.Errorf("%s failed, but not with %s\n%s", p.test, p.shows, out)
		default:
			return nil
		}
	}
	return missed
}

// run runs the test where nothing may be skipped, and sees that it ran.
func (p proof) run(ctx context.Context, args, env []string) (out string, err error) {
	args = append([]string{"test", "-count=1", "-v", "-timeout=3m", "-run=^" + p.test + "$"}, append(args, p.pkg)...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "SEMEL_SERVICES=required")
	cmd.Env = append(cmd.Env, p.env...)
	cmd.Env = append(cmd.Env, env...)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err = cmd.Run()
	if err == nil && !strings.Contains(b.String(), "--- PASS: "+p.test) {
		err = fmt.Errorf("there is no such test in %s, or it was skipped", p.pkg)
	}
	return b.String(), err
}
