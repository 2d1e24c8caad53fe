//go:build linux

package main

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/as2"
	"github.com/semel-go/semel/examples/internal/programtest"
	"github.com/semel-go/semel/internal/services"
)

func resultLine(t *testing.T, output string) map[string]int {
	t.Helper()
	return programtest.Result(t, output, "posts", "messages", "mdn", "events", "transformed", "archived", "lost", "doubled")
}

// The processes are killed at the moments that matter, the partner sends again, and
// nothing is lost or doubled. No MDN is without its message: lost counts that too.
func TestEdihub(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, ""))

	output, status := p.End(t)

	require.Equal(t, 0, status)
	require.Equal(t, map[string]int{
		"posts": 225, "messages": 153, "mdn": 153, "events": 153, "transformed": 150, "archived": 153, "lost": 0, "doubled": 0,
	}, resultLine(t, output))
	for _, k := range kills {
		require.Contains(t, output, k.process+" killed with SIGKILL while "+k.says)
	}
	for _, line := range []string{
		`\n +[1-9]\d*  posted once more`,
		`the claim-check store is away now`,
		`\n +19  refused, each with a reason`,
		`\n +53  answered with the MDN that the partner had already, byte for byte`,
		`\n +3  dead letters: in front of a person`,
		`\n +1  dead letters for another content`,
		`segment 21 \(UNT\), element 1, byte \d+: it says 21 segments, there are 20`,
		`segment 11 \(QTY\), element 1, byte 300: "A90101" is no number`,
		`a message of type "ORDERS" is no invoice`,
		`segment 2 \(UNZ\), byte 41: there is no message`,
		`a second interchange begins`,
		`nobody of that name`,
		`an MDN is requested to an address`,
		`read header Message-ID: it is empty or missing`,
	} {
		require.Regexp(t, line, output)
	}
	p.LeavesNothing(t)
}

// RESULT must tell when the promise is broken: here the engine takes every copy for
// the first.
func TestEdihub_TellsDoubles(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, "plant_no_claim"), "-rate", "100")

	output, status := p.End(t)

	require.Equal(t, 1, status)
	n := resultLine(t, output)
	require.Positive(t, n["doubled"])
	require.Greater(t, n["events"], n["messages"])
}

var listening = regexp.MustCompile(`curl -s (http://\S+/as2)`)

// Anybody can try it: the same Message-ID posted twice by curl gets two MDNs that are
// equal, headers too, and makes one event.
func TestEdihub_Curl(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		services.Missing(t, "there is no curl on the PATH: install it")
	}
	p := programtest.Start(t, program.Build(t, ""), "-listen", "127.0.0.1:0", "-rate", "100")
	url := listening.FindStringSubmatch(p.Until(t, "curl -s http"))[1]
	dir := t.TempDir()
	post := func(name string) []byte {
		file := filepath.Join(dir, name)
		out, err := exec.Command(curl, "-sS", "-i", url, "-o", file, //nolint:gosec // the test's
			"-H", "AS2-From: ACME", "-H", `AS2-To: "SEMEL HUB"`, "-H", "Message-ID: <mine-1@example.com>", "-H", "Disposition-Notification-To: me",
			"-H", "Content-Type: application/edifact", "--data-binary", "@invoic.edi").CombinedOutput()
		require.NoError(t, err, "%s", out)
		mdn, err := os.ReadFile(file) //nolint:gosec // the test's
		require.NoError(t, err)
		return mdn
	}

	first, second := post("mdn.1"), post("mdn.2")

	out, err := exec.Command("cmp", filepath.Join(dir, "mdn.1"), filepath.Join(dir, "mdn.2")).CombinedOutput() //nolint:gosec // the test's
	require.NoError(t, err, "%s\n%s\n%s", out, first, second)
	_, message, ok := bytes.Cut(first, []byte("\r\n")) // the status line
	require.True(t, ok)
	requireMDN(t, message, "<mine-1@example.com>")

	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGINT))
	output, status := p.End(t)
	require.Equal(t, 0, status)
	n := resultLine(t, output)
	require.Equal(t, []int{154, 154, 154, 151, 0, 0}, []int{n["messages"], n["events"], n["archived"], n["transformed"], n["lost"], n["doubled"]})
	p.LeavesNothing(t)
}

// requireMDN reads an answer with others' parsers.
func requireMDN(t *testing.T, answer []byte, id string) {
	t.Helper()
	msg, err := mail.ReadMessage(bytes.NewReader(answer))
	require.NoError(t, err)
	require.Equal(t, `"SEMEL HUB"`, msg.Header.Get("AS2-From"))
	_, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	require.NoError(t, err)
	parts := multipart.NewReader(msg.Body, params["boundary"])
	_, err = parts.NextPart()
	require.NoError(t, err)
	part, err := parts.NextPart()
	require.NoError(t, err)
	require.Equal(t, "message/disposition-notification", part.Header.Get("Content-Type"))
	var said strings.Builder
	_, err = io.Copy(&said, part)
	require.NoError(t, err)
	require.Contains(t, said.String(), "\r\nOriginal-Message-ID: "+id+"\r\n")
	require.Contains(t, said.String(), "\r\nDisposition: automatic-action/MDN-sent-automatically; processed\r\n")
	require.Contains(t, said.String(), "\r\nReceived-Content-MIC: "+as2.MIC("sha-256", []byte(invoic))+"\r\n")
}

func TestEdihub_Refuses(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"-n is 10":                     {"-n", "10"},
		"take posts at -listen nobody": {"-listen", "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, program.Build(t, ""), args...)

			_, status := p.End(t)

			require.NotZero(t, status)
			require.Contains(t, p.ErrOut.String(), name)
			p.LeavesNothing(t)
		})
	}
}

// Whatever ends the program, no server and no process of the hub outlives it.
func TestEdihub_LeavesNothing(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"Killed": syscall.SIGKILL, "CtrlC": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, "env", "TMPDIR="+t.TempDir(), program.Build(t, "")) // nobody else removes the stores
			p.Until(t, "killed with SIGKILL")

			require.NoError(t, p.Cmd.Process.Signal(signal))

			_, status := p.End(t)
			require.NotZero(t, status)
			if signal != syscall.SIGKILL {
				require.Contains(t, p.ErrOut.String(), "stopped before the end")
			}
			p.LeavesNothing(t)
		})
	}
}
