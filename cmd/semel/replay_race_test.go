package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Case U1: the same dead letter replayed from two tabs, and in a bulk at the same
// time: one effect (ServiceControl#4797). The bulk is that of the command line.
func TestDLQ_ReplayFromTwoTabsAndInABulk(t *testing.T) {
	t.Parallel()

	const n = 60
	s := newShop(t)
	var want []string
	for i := range n {
		id := fmt.Sprintf("m%02d", i)
		s.send(t, handler.Dead, id, id)
		s.send(t, handler.Stored, id, id+"-next")
		want = append(want, id, id+"-next")
	}
	s.mended.Store(true)
	s.works(t)
	s.works(t)

	store := inbox.NewStore(s.db.Schema)
	in := s.consumer(t, s.db.Pool)
	replays := []func(id int64) error{
		func(id int64) error { return store.Replay(t.Context(), s.db.Pool, id, "ann") },
		func(id int64) error { return store.Replay(t.Context(), s.db.Pool, id, "bob") },
		func(id int64) error {
			_, err := in.Replay(t.Context(), id)
			return err
		},
	}
	var wg sync.WaitGroup
	for _, replay := range replays {
		wg.Go(func() {
			for id := int64(n); id > 0; id-- { // the bulk begins at the other end
				if err := replay(id); !errors.Is(err, inbox.ErrNoDeadLetter) { // somebody was faster
					require.NoError(t, err)
				}
			}
		})
	}
	wg.Go(func() {
		r := s.semel(t, "dlq", "replay", "-consumer", "shipping", "-rate", "100/s", "-yes", "-json")
		var done struct {
			Chosen  int
			Begun   []int64
			Refused []struct{ ID int64 }
			Died    int `json:"died_again"`
			Stopped bool
		}
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &done), r.stderr)
		require.Equal(t, done.Chosen, len(done.Begun)+len(done.Refused))
		require.Zero(t, done.Died)
		require.False(t, done.Stopped)
	})
	wg.Wait()

	require.Eventually(t, func() bool { return works(t, s.db, "inbox", "status") == "nothing waits in the inbox\n" }, deadline, tick)
	require.ElementsMatch(t, want, s.effects(t))
	for id := int64(1); id <= n; id++ {
		require.Equal(t, dlq.Resolved, s.letter(t, id).State)
	}
}
