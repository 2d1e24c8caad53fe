package inbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
)

// cutScenario is one thing that the engine does, and what comes of it with no
// cut. What cuts change is written in run.
type cutScenario struct {
	name     string
	typ      string // of the message: see handle
	cfg      inbox.Config
	cold     bool                                                                                      // no connection, no checks done, consumer unknown
	prepare  func(t *testing.T, b *cutBundle, id string)                                               // before; not cut
	act      func(ctx context.Context, t *testing.T, b *cutBundle, id string) (handler.Outcome, error) // what is cut; nil: Process
	outcome  handler.Outcome
	attempts int // failed ones
	left     left
	// inDoubt is left where the COMMIT of a mere note in a dead letter was done
	// and its answer lost. The note is written again: its sums say at least how
	// often something happened. The zero value: no different.
	inDoubt left
}

// cutPoint is where a connection is cut; at 0 it is not.
type cutPoint struct {
	side   faultproxy.Side
	moment faultproxy.Moment
	at     int
}

// count runs the scenario with no cut and returns the kinds of the messages.
func (s *cutScenario) count(t *testing.T, b *cutBundle, side faultproxy.Side) string {
	t.Helper()
	var kinds [3]string
	for i := range kinds { // the first prepares the statements
		kinds[i] = s.run(t, b, fmt.Sprintf("count %d.%d", side, i), cutPoint{side: side}, false).kinds
	}
	require.NotEmpty(t, kinds[1])
	require.Equal(t, kinds[1], kinds[2], "the scenario is not the same each time")
	return kinds[1]
}

// sweep runs the scenario with a cut at each of the messages in turn. After one
// that others follow in the same trip is the same as before the next.
func (s *cutScenario) sweep(t *testing.T, b *cutBundle, side faultproxy.Side, moment faultproxy.Moment, kinds string) (cuts int) {
	t.Helper()
	for at := 1; at <= len(kinds); at++ {
		if moment == faultproxy.After && !strings.Contains("SQ^p", kinds[at-1:at]) {
			continue
		}
		p := cutPoint{side, moment, at}
		id := fmt.Sprintf("%d.%s.%d", side, moment, at)
		if !s.cold { // a new connection has its statements to prepare
			s.run(t, b, "warm "+id, cutPoint{side: side}, false)
		}
		inDoubt := moment == faultproxy.After && at == len(kinds) || side == faultproxy.FromServer && at > len(kinds)-len("CZ")
		r := s.run(t, b, "cut "+id, p, inDoubt)
		select {
		case <-r.Sprung():
			cuts++
		default:
			require.FailNow(t, "nothing was cut: the test proves nothing", "%s, message %d of %s", moment, at, kinds)
		}
		require.Equal(t, kinds[:at], r.kinds[:at], "another message was cut than was meant")
	}
	return cuts
}

// run runs the scenario with a message of its own and requires what must come
// of it. In doubt is a cut that loses nothing but the answer to the last COMMIT.
func (s *cutScenario) run(t *testing.T, b *cutBundle, id string, p cutPoint, inDoubt bool) *recording {
	t.Helper()
	if s.cold {
		b.open(t, "consumer of "+id, s.cfg)
		defer b.pool.Close()
	}
	if s.prepare != nil {
		s.prepare(t, b, id)
	}
	told, failed := b.told(id), b.in.Stats().FailedAttempts

	r := b.lie(p)
	outcome, err := s.act(t.Context(), t, b, id)
	if err != nil { // not settled: it comes again
		require.ErrorIs(t, err, inbox.ErrOutage)
		require.NotZero(t, p.at, "an outage with no cut: %s", err)
		outcome, err = s.act(t.Context(), t, b, id)
	}
	b.proxy.Lift()

	where := fmt.Sprintf("cut at %d of %s, %s", p.at, r.kinds, p.moment)
	require.NoError(t, err, where)
	require.Equal(t, s.outcome, outcome, where)
	want, attempts := s.left, s.attempts
	if inDoubt && s.inDoubt != (left{}) {
		want = s.inDoubt
	}
	if p.at > 0 && r.handling[p.at-1] && s.typ != failsAlways { // whose attempts were all to fail anyway
		attempts++
		if s.left.letters > 0 {
			want.attempts++
		}
	}
	require.Equal(t, want, b.left(t, id), where)
	require.Equal(t, int64(attempts), b.in.Stats().FailedAttempts-failed, where)
	require.Equal(t, want.letters, b.told(id)-told, where)
	if p.at > 0 {
		b.requireNothingLeaked(t, where)
	}
	return r
}
