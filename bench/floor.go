package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/bench/byhand"
)

//go:embed pgbench/floor.sql
var pgbenchScript string

// floor compares the floor of the other benchmarks with pgbench: a floor far
// below what the database gives would make anything look cheap.
func (b *bench) floor(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	bencher, err := b.newPgbench(db)
	if err != nil {
		return result{}, err
	}
	defer bencher.close()

	handle := handledByHand(&byhand.Consumer{Pool: db.pool, ID: consumerID, Work: work})
	if _, err := rate(ctx, workers, b.round, fresh, handle); err != nil {
		return result{}, fmt.Errorf("warm up: %w", err)
	}
	ours := side{"by hand", func(ctx context.Context) (float64, error) {
		return rate(ctx, workers, b.round, fresh, handle)
	}}
	r, err := b.pairs(ctx, ours, side{"pgbench", bencher.rate})
	r.details = append(r.details, fmt.Sprintf("%d clients, pgbench -M prepared", workers))
	return r, err
}

// pgbench runs pgbench's side of a pair.
type pgbench struct {
	script, schema string
	seconds        int
	config         *pgxpool.Config
	consumer       int // a new one each round: its ids begin anew
}

func (b *bench) newPgbench(db *database) (*pgbench, error) {
	if _, err := exec.LookPath("pgbench"); err != nil {
		return nil, errors.New("pgbench is not installed: install PostgreSQL's contributed programs")
	}
	dir, err := os.MkdirTemp("", "semel-bench-")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "floor.sql")
	if err := os.WriteFile(script, []byte(pgbenchScript), 0o600); err != nil {
		return nil, err
	}
	return &pgbench{
		script: script, schema: db.schema, seconds: int(b.round.Seconds()), config: db.pool.Config(), consumer: consumerID,
	}, nil
}

func (p *pgbench) close() { _ = os.RemoveAll(filepath.Dir(p.script)) }

var pgbenchRate = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

func (p *pgbench) rate(ctx context.Context) (float64, error) {
	p.consumer++
	clients := strconv.Itoa(workers)
	cmd := exec.CommandContext(ctx, "pgbench", "--no-vacuum", "-M", "prepared", "-c", clients, "-j", "2", "-T", strconv.Itoa(p.seconds),
		"-D", "n=0", "-D", "consumer="+strconv.Itoa(p.consumer), "-f", p.script)
	c := p.config.ConnConfig
	cmd.Env = append(os.Environ(), // not as arguments: everybody can read those
		"PGHOST="+c.Host, "PGPORT="+strconv.Itoa(int(c.Port)), "PGUSER="+c.User, "PGPASSWORD="+c.Password, "PGDATABASE="+c.Database,
		"PGOPTIONS=-c search_path="+p.schema)
	if c.TLSConfig == nil {
		cmd.Env = append(cmd.Env, "PGSSLMODE=disable")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	m := pgbenchRate.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("pgbench printed no rate:\n%s", out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}
