package services

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

// SkipExamples leaves out the examples of a test program where the database is
// not named: an example cannot skip itself. Where all services must be there it
// does nothing, and the examples fail. Call it first in TestMain.
func SkipExamples() {
	if strings.TrimSpace(os.Getenv(PostgresVariable)) != "" || required() {
		return
	}
	flag.Parse() // or -skip of the command line would replace ours
	skip := "^Example"
	if given := flag.Lookup("test.skip").Value.String(); given != "" {
		skip = given + "|" + skip
	}
	if err := flag.Set("test.skip", skip); err != nil {
		fmt.Fprintln(os.Stderr, "skip the examples:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "SKIPPED, PROVES NOTHING: all examples, for %s is not set\n", PostgresVariable)
}
