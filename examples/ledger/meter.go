package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/examples/internal/example"
)

// meter measures who computes how long while postings come, as far as /proc tells.
// Make one with [newMeter], and let it run.
type meter struct {
	desk        *desk
	database    int // the process whose children serve connections; 0: elsewhere
	first, last reading
}

// reading is how long everybody has computed until a moment.
type reading struct {
	at                      time.Time
	machine, database, here time.Duration
	crew                    map[int]time.Duration
}

// newMeter returns a meter of this process, the crew, and the database, if that is on
// this machine.
func newMeter(ctx context.Context, pool *pgxpool.Pool, d *desk) (*meter, error) {
	m := &meter{desk: d}
	var backend int
	if err := pool.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		return nil, fmt.Errorf("ask which process serves us: %w", err)
	}
	if p, ok := readProcess(backend); ok && strings.HasPrefix(p.name, "postgres") {
		m.database = p.parent
	}
	return m, nil
}

// run measures until ctx ends.
func (m *meter) run(ctx context.Context) error {
	for example.Wait(ctx, 500*time.Millisecond) == nil {
		if m.desk.sum().Began.IsZero() {
			continue
		}
		m.last = m.read()
		if m.first.at.IsZero() {
			m.first = m.last
		}
	}
	return nil
}

func (m *meter) read() reading {
	r := reading{at: time.Now(), machine: computedByAll(), crew: make(map[int]time.Duration)}
	if m.database != 0 {
		r.database = computedBy(m.database)
	}
	here, _ := readProcess(os.Getpid())
	r.here = here.own
	writers, relays := m.desk.processes()
	for _, pid := range append(writers, relays...) {
		r.crew[pid] = m.last.crew[pid] // of one that was killed since
		if p, ok := readProcess(pid); ok {
			r.crew[pid] = p.own
		}
	}
	return r
}

// share is how much of one processor somebody used.
type share struct {
	who     string
	percent int64
}

// shares are how much of one processor each part used: first all of the machine, then
// the parts of it. None: there is no /proc.
func (m *meter) shares(ownKafka bool) []share {
	took := m.last.at.Sub(m.first.at)
	if took <= 0 || m.last.machine == 0 {
		return nil
	}
	writers, relays := m.desk.processes()
	crew := func(pids []int) (spent time.Duration) {
		for _, pid := range pids {
			spent += m.last.crew[pid] - m.first.crew[pid]
		}
		return spent
	}
	watching, others := "the example, which watches", "everything else, Kafka too if it is here"
	if ownKafka {
		watching, others = "Kafka and the example, which watches", "everything else"
	}
	shares := []share{
		{"all that ran on the machine", percent(m.last.machine-m.first.machine, took)},
		{"PostgreSQL", percent(m.last.database-m.first.database, took)},
		{"the relays", percent(crew(relays), took)},
		{"the writer", percent(crew(writers), took)},
		{watching, percent(m.last.here-m.first.here, took)},
	}
	rest := shares[0].percent
	for _, s := range shares[1:] {
		rest -= s.percent
	}
	return append(shares, share{others, max(0, rest)})
}

func percent(part, whole time.Duration) int64 { return int64(100 * part / max(whole, 1)) }
