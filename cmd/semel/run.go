package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// usageError is a command line that cannot be understood: exit code 2.
type usageError struct {
	path string // the command it was meant for: "semel migrate"
	text string
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%s\nRun \"%s -h\" for help.", e.text, e.path)
}

// exitCode is 0 for success and for help that was asked for, 2 for a command
// line that cannot be understood, for a limit that is passed and for a problem
// that was found, 1 for all else.
func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage), hasTold(err):
		return 2
	}
	return 1
}

// hasTold reports whether err is a finding, which has been printed.
func hasTold(err error) bool { return errors.Is(err, errOver) || errors.Is(err, errProblem) }

// command is a name on the command line: a group of others or a thing to do.
type command struct {
	name     string
	synopsis string // arguments and flags of their own, for the first line of help
	summary  string
	note     string // what else its help says
	group    []command
	do       func(ctx context.Context, c *call) error
}

// asApplication is the note of commands that decide.
const asApplication = "It changes rows: the database role needs the rights of an application; those of an operator are for looking (\"semel migrate grants\")."

func commands() []command {
	return []command{
		{name: "migrate", summary: "Create and change the tables.", group: migrateCommands()},
		{name: "dlq", summary: "Look at the dead letters: messages that wait for a person.", group: dlqCommands()},
		{name: "outbox", summary: "Look after the events that are to be published.", group: outboxCommands()},
		{name: "inbox", summary: "Look after the messages that wait, and what was handled.", group: inboxCommands()},
		{name: "calls", summary: "Look at the calls to the outside, and decide on those of which nobody knows the end.", group: callsCommands()},
		{name: "check", synopsis: " [flags]", summary: "Compare what waits with limits, for a monitoring system.", do: check},
		{name: "doctor", synopsis: " [flags]", summary: "Look for what would break the promise later, and say what to do.", do: examine},
		{name: "relay", synopsis: " -kafka BROKERS | -amqp URL | -http URL [flags]", summary: "Publish the events of the outbox until it is told to stop.", do: relay},
	}
}

// run does what args say. It writes results to stdout, and an error to stderr
// before it returns it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := command{name: "semel", summary: "Every message handled once, or in front of a person.", group: commands()}
	err := root.run(ctx, "semel", args, stdout, stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) && !hasTold(err) {
		fmt.Fprintf(stderr, "semel: %s\n", printable(err.Error()))
	}
	return err
}

func (c command) run(ctx context.Context, path string, args []string, stdout, stderr io.Writer) error {
	if c.group == nil {
		return c.do(ctx, newCall(c, path, args, stdout, stderr))
	}
	if len(args) == 0 {
		return &usageError{path, path + " needs a command: " + c.names()}
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		c.help(path, stdout)
		return flag.ErrHelp
	}
	for _, sub := range c.group {
		if sub.name == args[0] {
			return sub.run(ctx, path+" "+sub.name, args[1:], stdout, stderr)
		}
	}
	return &usageError{path, fmt.Sprintf("%s has no command %q, but: %s", path, masked(args[0]), c.names())}
}

func (c command) names() string {
	var names []string
	for _, sub := range c.group {
		names = append(names, sub.name)
	}
	return strings.Join(names, ", ")
}

func (c command) help(path string, w io.Writer) {
	fmt.Fprintf(w, "%s\n\nUsage: %s COMMAND\n\n", c.summary, path)
	for _, sub := range c.group {
		fmt.Fprintf(w, "  %-8s %s\n", sub.name, sub.summary)
	}
	fmt.Fprintf(w, "\nRun \"%s COMMAND -h\" for more.\n", path)
}
