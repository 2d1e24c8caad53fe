package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

//go:embed queries/connections.sql
var connectionsSQL string

// sample is how the child was at one moment.
type sample struct {
	at     time.Duration // since the beginning
	values [resourceCount]float64

	threads, poolTotal, poolInUse int
	lag                           []int64 // by stream
	settled                       int64
}

// look takes a sample. While the child is frozen or restarts, it waits.
func (r *soaking) look(ctx context.Context) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said, err := r.child.do(ctx, look)
	if err != nil {
		return s, err
	}
	status, err := readStatus(r.child.cmd.Process.Pid)
	if err != nil {
		return s, err
	}
	var sessions int
	if err := r.pool.QueryRow(ctx, connectionsSQL, r.applications()).Scan(&sessions); err != nil {
		return s, fmt.Errorf("count the consumer's sessions: %w", err)
	}
	for _, stream := range r.streams {
		lag, err := stream.broker.lag(ctx)
		if err != nil {
			return s, err
		}
		s.lag = append(s.lag, lag)
	}
	s.at = time.Since(r.began)
	s.values = [resourceCount]float64{
		rss:         status.rss,
		heap:        float64(said.Heap) / (1 << 20),
		goroutines:  float64(said.Goroutines),
		descriptors: float64(status.descriptors),
		sessionsOf:  float64(sessions),
	}
	s.threads, s.poolTotal, s.poolInUse = status.threads, said.PoolTotal, said.PoolInUse
	for _, n := range said.Settled {
		s.settled += n
	}
	return s, nil
}

const sampleHeader = "    time   rss MB  heap MB  goroutines  threads  fds  pool total/used  sessions   settled   lag kafka  lag rabbitmq"

func (s sample) String() string {
	return fmt.Sprintf("%8s %8.1f %8.2f %11.0f %8d %4.0f %11d/%-4d %9.0f %9d %11d %13d",
		s.at.Round(time.Second), s.values[rss], s.values[heap], s.values[goroutines], s.threads, s.values[descriptors],
		s.poolTotal, s.poolInUse, s.values[sessionsOf], s.settled, s.lag[0], s.lag[1])
}

// status is what the kernel says of a process. Linux only.
type status struct {
	rss         float64 // MB
	threads     int
	descriptors int
}

func readStatus(pid int) (s status, err error) {
	proc := fmt.Sprintf("/proc/%d", pid)
	text, err := os.ReadFile(proc + "/status")
	if err != nil {
		return s, fmt.Errorf("read the consumer's status: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "VmRSS:":
			s.rss, err = strconv.ParseFloat(fields[1], 64)
			s.rss /= 1024
		case "Threads:":
			s.threads, err = strconv.Atoi(fields[1])
		}
		if err != nil {
			return s, fmt.Errorf("read the consumer's status: %w", err)
		}
	}
	if s.rss == 0 || s.threads == 0 {
		return s, errors.New("read the consumer's status: it has no VmRSS or no Threads")
	}
	open, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return s, fmt.Errorf("count the consumer's file descriptors: %w", err)
	}
	s.descriptors = len(open)
	return s, nil
}
