package transporttest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/transports/memory"
	"github.com/semel-go/semel/transports/transporttest"
)

// plantVariable names the fault for TestPlanted, which runs in a child process
// because its subtests are expected to fail.
const plantVariable = "TRANSPORTTEST_PLANT"

// TestSuiteCatches proves that the suite can fail: each plant is one fault of
// a transport, and the subtests it breaks must fail with their sentences.
func TestSuiteCatches(t *testing.T) {
	t.Parallel()

	for _, p := range plants() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()

			output := runPlanted(t, p)

			for _, name := range p.breaks {
				require.Contains(t, output, "--- FAIL: TestPlanted/"+name+" (")
				require.Contains(t, output, "broken sentence of the contract: "+transporttest.Sentences()[name])
			}
		})
	}
}

// TestEverySentenceHasAPlant keeps a subtest that cannot fail out of the suite.
func TestEverySentenceHasAPlant(t *testing.T) {
	t.Parallel()

	sentences := transporttest.Sentences()
	for _, p := range plants() {
		for _, name := range p.breaks {
			require.Contains(t, transporttest.Sentences(), name, "plant %s breaks a subtest that is not there", p.name)
			delete(sentences, name)
		}
	}
	require.Empty(t, sentences, "no plant breaks these")
}

// TestSuiteSkipsWhatIsNotDeclared proves that a missing feature is named.
func TestSuiteSkipsWhatIsNotDeclared(t *testing.T) {
	t.Parallel()

	output := runPlanted(t, plant{name: "declares-nothing", breaks: []string{"Tombstones.*", "UnsettledComesAgain"}})

	require.Contains(t, output, "the transport does not declare Features.Tombstones: A nil payload arrives as nil, an empty one as empty.")
	require.Contains(t, output, "the transport does not declare Features.Abort: ")
	require.Contains(t, output, "--- SKIP: TestPlanted/UnsettledComesAgain (")
}

func TestPlanted(t *testing.T) {
	name := os.Getenv(plantVariable)
	if name == "" {
		t.Skip("this is the child process of TestSuiteCatches")
	}
	features := transporttest.Features{
		Ordered: true, KeepsOrder: true, HeaderOrder: true, RepeatedHeaders: true, NilHeaders: true, BinaryHeaders: true, Tombstones: true,
		Positions: true, BrokerTime: true, Redelivered: true, Pause: true, Abort: true, Revoke: true,
		Deadline: time.Second, // most plants run into it
	}
	damage := func(tr transporttest.Transport) transporttest.Transport { return tr }
	if name == "declares-nothing" {
		features = transporttest.Features{Deadline: features.Deadline}
	} else {
		all := plants()
		features.OneActive = name == "shares-what-is-for-one"
		damage = all[slices.IndexFunc(all, func(p plant) bool { return p.name == name })].damage
	}
	transporttest.Run(t, func(*testing.T) transporttest.Transport { return damage(newMemory()) }, features)
}

// runPlanted runs the subtests that p breaks on p in a child process.
func runPlanted(t *testing.T, p plant) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.timeout=2m",
		"-test.run=^TestPlanted$/^("+strings.Join(p.breaks, "|")+")$")
	cmd.Env = append(os.Environ(), plantVariable+"="+p.name)
	output, _ := cmd.CombinedOutput() // its failure is the point
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of the child:\n%s", output)
		}
	})
	return string(output)
}

func newMemory() transporttest.Transport {
	queue := memory.NewQueue("payments")
	return transporttest.Transport{
		Publisher: queue,
		NewMember: func(testing.TB) transporttest.Member {
			source := memory.NewSource(queue)
			return transporttest.Member{Source: source, Abort: source.Abort, Revoke: source.Abort}
		},
	}
}
