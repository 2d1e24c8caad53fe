package inbox_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/inbox"
)

// Case K13: what waited for its next attempt was kept in memory, and a million of
// them ended the process (parallel-consumer#832). They wait in the database: a
// worker beside very many takes no more memory than one that is alone, and handles
// what is due. SEMEL_TEST_WAITING says how many (make soak: a million).
func TestWork_ManyWaitForTheirNextAttempt(t *testing.T) {
	t.Parallel()

	waiting := 40_000
	if n, err := strconv.Atoi(os.Getenv("SEMEL_TEST_WAITING")); err == nil {
		waiting = n
	}
	const due = 200
	tests := []struct {
		name    string
		waiting int
		after   string // they are ready
	}{
		{name: "Alone", after: "0 s"},
		{name: "Delayed", waiting: waiting, after: "1 h"},
		{name: "Ready", waiting: waiting, after: "0 s"}, // as after an outage
	}
	peaks := map[string]int{}
	for _, tt := range tests { // one after the other: each has the machine
		b := setup(t)
		b.fill(t, tt.waiting, tt.after)
		b.exec(t, `UPDATE inbox_messages SET attempts = 3, first_failed_at = clock_timestamp(), last_failed_at = clock_timestamp()`)
		b.exec(t, `VACUUM ANALYZE inbox_messages`)
		in := b.inbox(t, effect, inbox.Config{})
		for i := range due {
			_, err := in.Store(t.Context(), message(fmt.Sprint("due_", i)))
			require.NoError(t, err)
		}
		b.exec(t, `UPDATE inbox_messages SET ready_at = clock_timestamp() - interval '1 h' WHERE message_text LIKE 'due%'`) // the first

		w := b.worker(t)
		require.Eventually(t, func() bool { return b.count(t, `SELECT count(*) FROM effects WHERE message_id LIKE 'due%'`) == due }, childDeadline, tick, tt.name)
		output := w.finish(t)

		_, peak, found := strings.Cut(output, "peak ")
		require.True(t, found, output)
		kB, err := strconv.Atoi(strings.TrimSpace(peak))
		require.NoError(t, err)
		peaks[tt.name] = kB
		if tt.name == "Delayed" {
			require.Equal(t, due, b.count(t, `SELECT count(*) FROM effects`), "the others wait")
		}
		require.Zero(t, b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NOT NULL`))
	}
	t.Logf("peak memory in kB: %v", peaks)
	const more = 20 << 10 // kB; each of those that wait has a payload of 1000 bytes
	require.Less(t, peaks["Delayed"], peaks["Alone"]+more)
	require.Less(t, peaks["Ready"], peaks["Alone"]+more)
}
