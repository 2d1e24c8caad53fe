package example_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/example"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		args  string
		usage bool
		says  string
	}{
		{name: "None"},
		{name: "Good", args: "-n 5 -keep -v"},
		{name: "Unknown", args: "-x", usage: true, says: "-x"},
		{name: "NoNumber", args: "-n five", usage: true, says: `"five"`},
		{name: "Argument", args: "-n 5 six", usage: true, says: `unknown argument "six"`},
		{name: "TooLow", args: "-n 0", usage: true, says: "-n is 0, it must be between 1 and 10"},
		{name: "TooHigh", args: "-n 11", usage: true, says: "-n is 11, it must be between 1 and 10"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var o example.Options
			flags := o.Flags("test", "How to use it.\n")
			n := flags.Int("n", 1, "a `number`")

			err := flags.Parse(strings.Fields(tt.args), &strings.Builder{})
			if err == nil {
				err = example.Between("n", *n, 1, 10)
			}

			if !tt.usage {
				require.NoError(t, err)
				require.Equal(t, tt.args != "", o.Keep && o.Verbose)
				return
			}
			require.ErrorIs(t, err, example.ErrUsage)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestFlags_Help(t *testing.T) {
	t.Parallel()
	var o example.Options
	var out strings.Builder

	err := o.Flags("test", "How to use it.\n").Parse([]string{"-h"}, &out)

	require.ErrorIs(t, err, flag.ErrHelp)
	require.Regexp(t, `^How to use it.\n\n  -keep\n`, out.String())
}

func TestBetween_Durations(t *testing.T) {
	t.Parallel()
	require.NoError(t, example.Between("for", time.Second, time.Second, time.Minute))
	require.EqualError(t, example.Between("for", 2*time.Minute, time.Second, time.Minute), "-for is 2m0s, it must be between 1s and 1m0s: see -h")
}
