package campaign

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tables is a group's schema, written to as an engine with bugs would.
type tables struct {
	*pgtest.DB
	t *testing.T
}

func setupTables(t *testing.T) *tables {
	t.Helper()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), schema.Qualify(tablesSQL, db.Schema))
	require.NoError(t, err)
	tb := &tables{db, t}
	tb.exec(`INSERT INTO balances (key) SELECT unnest($1::text[])`, keys())
	return tb
}

func (tb *tables) exec(sql string, args ...any) {
	tb.t.Helper()
	_, err := tb.Pool.Exec(tb.t.Context(), sql, args...)
	require.NoError(tb.t, err)
}

// row writes only the row of an effect, sum only its part in the balance.
func (tb *tables) row(n int) {
	tb.exec(`INSERT INTO effects (message, key, n) VALUES ($1, $2, $3)`, id(n), key(n), n)
}

func (tb *tables) sum(n int) {
	tb.exec(`UPDATE balances SET balance = balance + 1 WHERE key = $1`, key(n))
}

func (tb *tables) effects(ns ...int) {
	for _, n := range ns {
		tb.row(n)
		tb.sum(n)
	}
}

func (tb *tables) dead(n int, reason, payload string) {
	tb.exec(`INSERT INTO dead_letters (consumer_id, message_id, fingerprint, reason, message_text, payload)
		VALUES (1, gen_random_uuid(), 7, $1, $2, $3)`, reason, id(n), []byte(payload))
}

// decided writes a dead letter about which a person has decided.
func (tb *tables) decided(n int, state dlq.State) {
	tb.dead(n, "permanent", bytesSent)
	tb.exec(`UPDATE dead_letters SET state = $2 WHERE message_text = $1`, id(n), string(state))
}

// What is sent: messages 0 to 6, of three keys and none, the last one poison.
const (
	a0, b1, a2, a3, none4, none5, poison6 = 0, 1, 2, 3, 4, 5, 6

	bytesSent = "\x00\xff bytes"
)

func id(n int) string { return fmt.Sprintf("evt_%d", n) }

func key(n int) string {
	return map[int]string{a0: "key-00", b1: "key-01", a2: "key-00", a3: "key-00", poison6: "key-02"}[n]
}

func sentMessages() []sent {
	var all []sent
	for n := range 7 {
		m := &handler.Message{ID: id(n), Key: []byte(key(n)), Payload: []byte(bytesSent)}
		all = append(all, sent{m, n == poison6})
	}
	return all
}

func TestCount(t *testing.T) {
	t.Parallel()

	good := func(tb *tables) { tb.effects(a0, b1, a2, a3, none4, none5); tb.dead(poison6, "undecodable", bytesSent) }
	tests := []struct {
		name      string
		happened  func(tb *tables)
		unordered bool
		want      Tally
		wantNote  string
	}{
		{name: "AllWell", happened: good},
		{name: "OtherOrderBetweenKeysAndWithoutKey", happened: func(tb *tables) {
			tb.effects(none5, b1, none4, a0, a2, a3)
			tb.dead(poison6, "exhausted", bytesSent)
		}},
		{name: "Nothing", happened: func(*tables) {}, want: Tally{Lost: 7}, wantNote: "lost: evt_0 has no effect"},
		{name: "Lost", happened: func(tb *tables) {
			tb.effects(a0, b1, a3, none4, none5)
			tb.dead(poison6, "undecodable", bytesSent)
		}, want: Tally{Lost: 1}, wantNote: "lost: evt_2 has no effect"},
		{name: "WronglyDead", happened: func(tb *tables) {
			tb.effects(a0, b1, a3, none4, none5)
			tb.dead(a2, "exhausted", bytesSent)
			tb.dead(poison6, "undecodable", bytesSent)
		}, want: Tally{Lost: 1}, wantNote: "evt_2 is dead, reason exhausted, though"},
		{
			name: "DeadBesideItsEffect", happened: func(tb *tables) { good(tb); tb.dead(a2, "mismatch", bytesSent) },
			want: Tally{Lost: 1}, wantNote: "a copy of evt_2 is dead",
		},
		{name: "Doubled", happened: func(tb *tables) { good(tb); tb.effects(none4, none4) }, want: Tally{Doubled: 2}, wantNote: "evt_4 has 3 effects"},
		{name: "DoubledOutOfOrder", happened: func(tb *tables) { good(tb); tb.effects(a0) }, want: Tally{Doubled: 1}},
		{name: "LostBesideDoubledOfOneKey", happened: func(tb *tables) { // the balances alone look well
			tb.effects(a0, b1, a2, a2, none4, none5)
			tb.dead(poison6, "undecodable", bytesSent)
		}, want: Tally{Lost: 1, Doubled: 1}},
		{name: "DoubledBalanceOnly", happened: func(tb *tables) { good(tb); tb.sum(b1) }, want: Tally{Doubled: 1}, wantNote: "balances are too high by 1"},
		{name: "LostBalanceOnly", happened: func(tb *tables) {
			tb.effects(a0, a2, a3, none4, none5)
			tb.row(b1)
			tb.dead(poison6, "undecodable", bytesSent)
		}, want: Tally{Lost: 1}, wantNote: "balances lack 1"},
		{
			name: "PoisonLost", happened: func(tb *tables) { tb.effects(a0, b1, a2, a3, none4, none5) },
			want: Tally{Lost: 1}, wantNote: "poison evt_6 is not in the dead letters",
		},
		{name: "PoisonAltered", happened: func(tb *tables) {
			tb.effects(a0, b1, a2, a3, none4, none5)
			tb.dead(poison6, "undecodable", bytesSent[1:])
		}, want: Tally{Lost: 1}, wantNote: "other bytes"},
		{
			name: "PoisonTwice", happened: func(tb *tables) { good(tb); tb.dead(poison6, "mismatch", bytesSent) },
			want: Tally{Doubled: 1}, wantNote: "in the dead letters 2 times",
		},
		{
			name: "PoisonTookEffect", happened: func(tb *tables) { good(tb); tb.effects(poison6) },
			want: Tally{Doubled: 1}, wantNote: "evt_6 can only fail and has 1 effects",
		},
		{
			name: "NeverSent", happened: func(tb *tables) { good(tb); tb.effects(99); tb.dead(98, "permanent", "") },
			want: Tally{Lost: 1, Doubled: 1}, wantNote: "never sent",
		},
		{name: "Reordered", happened: func(tb *tables) {
			tb.effects(a2, b1, a0, a3, none4, none5)
			tb.dead(poison6, "undecodable", bytesSent)
		}, want: Tally{Reordered: 1}, wantNote: "evt_0 took effect behind evt_2"},
		{name: "ReorderedTwice", happened: func(tb *tables) {
			tb.effects(a3, b1, a0, a2, none4, none5)
			tb.dead(poison6, "undecodable", bytesSent)
		}, want: Tally{Reordered: 2}},
		{name: "OrderNotPromised", unordered: true, happened: func(tb *tables) {
			tb.effects(a3, b1, a0, a2, none4, none5)
			tb.dead(poison6, "undecodable", bytesSent)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tb := setupTables(t)
			tt.happened(tb)

			f, err := read(t.Context(), tb.Pool, tb.Schema)
			require.NoError(t, err)
			got := count(sentMessages(), f, spec{crew: crew{ordered: !tt.unordered}})

			require.Contains(t, fmt.Sprint(got.Notes), tt.wantNote)
			got.Notes = nil
			require.Equal(t, tt.want, got)
		})
	}
}

// A decision must be carried out: what was mended takes its effect and its dead
// letter is resolved, and that of other poison is discarded.
func TestCount_Decisions(t *testing.T) {
	t.Parallel()

	all := sentMessages()
	all[a2].message.Type = wire.Broken
	tests := []struct {
		name     string
		happened func(tb *tables)
		want     Tally
		wantNote string
	}{
		{name: "AllWell", happened: func(tb *tables) {
			tb.effects(a0, b1, a2, a3, none4, none5)
			tb.decided(a2, dlq.Resolved)
			tb.decided(poison6, dlq.Discarded)
		}},
		{name: "NotReplayed", happened: func(tb *tables) {
			tb.effects(a0, b1, a3, none4, none5)
			tb.decided(a2, dlq.Resolved)
			tb.decided(poison6, dlq.Discarded)
		}, want: Tally{Lost: 1}, wantNote: "evt_2 has no effect"},
		{name: "NotResolved", happened: func(tb *tables) {
			tb.effects(a0, b1, a2, a3, none4, none5)
			tb.decided(a2, dlq.Replaying)
			tb.decided(poison6, dlq.Discarded)
		}, want: Tally{Lost: 1}, wantNote: "the dead letter of evt_2, reason permanent, is replaying, not resolved"},
		{name: "NotDiscarded", happened: func(tb *tables) {
			tb.effects(a0, b1, a2, a3, none4, none5)
			tb.decided(a2, dlq.Resolved)
			tb.decided(poison6, dlq.Open)
		}, want: Tally{Lost: 1}, wantNote: "the dead letter of evt_6, reason permanent, is open, not discarded"},
		{name: "ReplayedBehindItsKey", happened: func(tb *tables) {
			tb.effects(a0, b1, a3, none4, none5, a2)
			tb.decided(a2, dlq.Resolved)
			tb.decided(poison6, dlq.Discarded)
		}, want: Tally{Reordered: 1}, wantNote: "evt_2 took effect behind evt_3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tb := setupTables(t)
			tt.happened(tb)

			f, err := read(t.Context(), tb.Pool, tb.Schema)
			require.NoError(t, err)
			got := count(all, f, spec{point: wire.Parked, crew: alone})

			require.Contains(t, fmt.Sprint(got.Notes), tt.wantNote)
			got.Notes = nil
			require.Equal(t, tt.want, got)
		})
	}
}
