package inbox_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

// seen is what the database says, and what the model says it must.
type seen struct {
	rows    []string // in the order stored
	records []string
	letters []string
	deaths  []string // that the journal holds
	effects []string // since the last look

	leased []string // rows that a process holds, or held when it died: chance
}

// String is what must be equal.
func (s seen) String() string {
	var text strings.Builder
	for _, part := range []struct {
		name  string
		lines []string
	}{{"rows", s.rows}, {"records", s.records}, {"letters", s.letters}, {"deaths", s.deaths}, {"effects", s.effects}} {
		fmt.Fprintf(&text, "%s: %s\n", part.name, strings.Join(part.lines, ", "))
	}
	return text.String()
}

// look reads what the database says.
func (w *world) look(t *rapid.T, p *promise) seen {
	names := make(map[dedup.ID]string, len(p.messages))
	for _, m := range p.messages {
		names[m.id()] = m.name
	}
	var s seen
	b := &pgx.Batch{}
	strs := func(into *[]string, sql string) {
		b.Queue(sql).Query(func(rows pgx.Rows) (err error) {
			*into, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
				var id pgtype.UUID
				var text string
				err := row.Scan(&id, &text)
				if id.Valid {
					text = names[id.Bytes] + " " + text
				}
				return text, err
			})
			return err
		})
	}
	strs(&s.rows, `SELECT message_id, CASE WHEN parked_at IS NOT NULL THEN 'parked' WHEN ready_at IS NULL THEN 'behind' ELSE 'ready' END
		FROM inbox_messages ORDER BY seq`)
	strs(&s.leased, `SELECT message_id, 'leased' FROM inbox_messages WHERE lease_owner IS NOT NULL`)
	strs(&s.records, `SELECT message_id, outcome::text FROM processed_messages`)
	strs(&s.letters, `SELECT NULL::uuid, convert_from(payload, 'UTF8') || ' ' || state || ' ' || reason FROM dead_letters`)
	strs(&s.deaths, `SELECT message_id, attempts::text FROM attempt_journal`)
	b.Queue("BEGIN")
	strs(&s.effects, `SELECT NULL::uuid, name FROM took ORDER BY n`)
	b.Queue(`DELETE FROM took`)
	b.Queue("COMMIT")
	require.NoError(t, w.Pool.SendBatch(t.Context(), b).Close())
	slices.Sort(s.records)
	slices.Sort(s.letters)
	slices.Sort(s.deaths)
	for _, name := range s.effects {
		w.effects[name]++
	}
	s.effects = p.inOrder(s.effects)
	return s
}

// look is what the database must say.
func (p *promise) look() seen {
	var s seen
	for _, m := range p.rows {
		s.rows = append(s.rows, fmt.Sprintf("%s %s", m.name, m.place))
	}
	for _, m := range p.messages {
		if m.outcome != 0 {
			s.records = append(s.records, fmt.Sprintf("%s %d", m.name, m.outcome))
		}
		if m.letter != "" {
			s.letters = append(s.letters, fmt.Sprintf("%s %s %s", m.name, m.letter, m.reason))
		}
		if m.deaths != 0 {
			s.deaths = append(s.deaths, fmt.Sprintf("%s %d", m.name, m.deaths))
		}
	}
	for _, m := range p.effects {
		s.effects = append(s.effects, m.name)
	}
	p.effects = nil
	slices.Sort(s.records)
	slices.Sort(s.letters)
	slices.Sort(s.deaths)
	s.effects = p.inOrder(s.effects)
	return s
}

// inOrder brings effects that may come in any order into one: those of different
// keys, of none, and with PerKey those of one step.
func (p *promise) inOrder(effects []string) []string {
	queue := func(name string) string {
		if m := p.message(name); p.ordered(m) {
			return m.key
		}
		return name
	}
	slices.SortStableFunc(effects, func(a, b string) int { return strings.Compare(queue(a), queue(b)) })
	return effects
}

func (p *promise) message(name string) *modelled {
	return p.messages[slices.IndexFunc(p.messages, func(m *modelled) bool { return m.name == name })]
}

// id is under what the message is claimed.
func (m *modelled) id() dedup.ID {
	if m.original == nil {
		return dedup.MessageID(m.name)
	}
	first := m.original.id()
	print := dedup.Fingerprint(modelType, []byte(m.name))
	return dedup.HashID(first[:], binary.BigEndian.AppendUint64(nil, uint64(print))) //nolint:gosec // the bits, not the value
}

const modelType = "order.paid"

// message is the message as it is delivered.
func (m *modelled) message(again bool) *handler.Message {
	msg := &handler.Message{ID: m.name, Type: modelType, Key: []byte(m.key), Payload: []byte(m.name)}
	if m.original != nil {
		msg.ID = m.original.name
	}
	msg.Origin.Redelivered = again
	return msg
}

// catchUp brings the model to where a process that died at work has left the inbox:
// how far it came with each key is chance.
func (p *promise) catchUp(left seen, fates map[string]*worldFate) {
	for _, m := range slices.Clone(p.rows) {
		if m.place == ready && !slices.Contains(left.rows, m.name+" ready") {
			p.step(m)
		}
		if m.place == ready {
			m.fate = fates[m.name].fate
			m.suspect = slices.Contains(left.leased, m.name+" leased")
		}
	}
	for _, m := range p.messages {
		m.deaths = 0
		for _, text := range left.deaths {
			if after, ok := strings.CutPrefix(text, m.name+" "); ok {
				m.deaths, _ = strconv.Atoi(after)
			}
		}
	}
}
