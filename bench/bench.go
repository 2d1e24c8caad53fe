package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

// workers is how many messages are handled at once, unless a benchmark says
// otherwise.
const workers = 16

// bench is one run of the command.
type bench struct {
	stdout, stderr io.Writer

	names    *regexp.Regexp
	rounds   int
	round    time.Duration
	messages int
	rows     int
	waiting  int
	events   int
	pending  int
	sized    int

	cpuProfile, memProfile string
}

// benchmark is one number, and what we promise about it.
type benchmark struct {
	name    string
	target  target
	measure func(*bench, context.Context) (result, error)
}

func benchmarks() []benchmark {
	return []benchmark{
		{"inline.vs_handwritten", atLeast(0.95), (*bench).inline},
		{"inline.remote_vs_handwritten", atLeast(1.2), (*bench).remote},
		{"duplicate.vs_handwritten", atLeast(0.85), (*bench).duplicate},
		{"floor.vs_pgbench", atLeast(0.85), (*bench).floor},
		{"kafka_run.vs_parts", atLeast(0.9), (*bench).kafkaRun},
		{"amqp_run.vs_parts", atLeast(0.9), (*bench).amqpRun},
		{"run.rss_mb", atMost(100), (*bench).memory},
		{"row.bytes", atMost(115), (*bench).rowBytes},
		{"engine.allocs", atMost(12), (*bench).allocs},
		{"breaker.overhead_ns", noTarget(), (*bench).breakerOverhead},
		{"inline.strict_vs_handwritten", atLeast(0.85), (*bench).strict},
		{"store.vs_copy", atLeast(0.5), (*bench).storeBulk},
		{"stored.vs_inline", atLeast(0.4), (*bench).storedToEffect},
		{"poison.others", atLeast(0.9), (*bench).poison},
		{"poison.others_retried", noTarget(), (*bench).poisonRetried},
		{"inbox.rss_mb", atMost(100), (*bench).inboxMemory},
		{"inbox.due_p99_ms", atMost(1000), (*bench).dueLatency},
		{"outbox.write.vs_insert", atLeast(0.9), (*bench).outboxWrite},
		{"outbox.notify_tax", atLeast(0.95), (*bench).notifyTax},
		{"relay.db.vs_skip_locked", atLeast(1.1), (*bench).relayDB},
		{"relay.db.vs_skip_locked_best", atLeast(1.1), (*bench).relayBest},
		{"relay.hot_key.vs_skip_locked", atLeast(0.9), (*bench).relayHot},
		{"relay.held_snapshot", atLeast(0.8), (*bench).relayHeld},
		{"relay.kafka.vs_parts", atLeast(0.9), (*bench).relayKafka},
		{"relay.hot_key.kafka", atLeast(0.8), (*bench).relayKafkaHot},
		{"relay.amqp.vs_parts", atLeast(0.9), (*bench).relayAMQP},
		{"relay.hot_key.amqp", noTarget(), (*bench).relayAMQPHot},
		{"relay.writers_p99", atMost(1.2), (*bench).relayWriters},
		{"relay.latency_over_raw_ms", atMost(20), (*bench).relayLatency},
		{"relay.rss_mb", atMost(100), (*bench).relayMemory},
		{"purge.writers_p99", atMost(1.5), (*bench).purgeWriters},
		{"webhook.store.vs_insert", atLeast(0.8), (*bench).webhookStore},
		{"webhook.latency_over_bare_ms", atMost(5), (*bench).webhookLatency},
		{"size.event_300", noTarget(), eventSize(smallPayload)},
		{"size.event_2k", noTarget(), eventSize(largePayload)},
		{"size.stored_300", noTarget(), storedSize(smallPayload)},
		{"size.stored_2k", noTarget(), storedSize(largePayload)},
	}
}

// measureAll prints a line for each benchmark. It goes on after one that could
// not be measured, and names those at the end. A missed target is no error:
// that is for the reader to judge.
func (b *bench) measureAll(ctx context.Context) error {
	settings, err := serverSettings(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.stdout, "# %s; %d CPUs, %s; %d rounds of %s\n", settings, runtime.NumCPU(), runtime.Version(), b.rounds, b.round)
	var broken []string
	for _, m := range benchmarks() {
		if !b.names.MatchString(m.name) {
			continue
		}
		result, err := m.measure(b, ctx)
		if err != nil {
			fmt.Fprintf(b.stderr, "bench: measure %s: %v\n", m.name, err)
			broken = append(broken, m.name)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		fmt.Fprintln(b.stdout, result.line(m.name, m.target))
	}
	if len(broken) > 0 {
		return fmt.Errorf("not measured: %s", strings.Join(broken, ", "))
	}
	return nil
}

// startProfiles starts what was asked for and returns what ends it.
func (b *bench) startProfiles() (stop func(), err error) {
	stop = func() {}
	if b.memProfile != "" {
		runtime.MemProfileRate = 1 // every allocation, so that counts are exact
	}
	if b.cpuProfile != "" {
		file, err := os.Create(b.cpuProfile)
		if err != nil {
			return nil, fmt.Errorf("make the CPU profile: %w", err)
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return nil, fmt.Errorf("make the CPU profile: %w", err)
		}
		stop = func() {
			pprof.StopCPUProfile()
			_ = file.Close()
		}
	}
	stopCPU := stop
	return func() {
		stopCPU()
		if err := b.writeMemProfile(); err != nil {
			fmt.Fprintln(b.stderr, "bench: write the memory profile:", err)
		}
	}, nil
}

func (b *bench) writeMemProfile() error {
	if b.memProfile == "" {
		return nil
	}
	file, err := os.Create(b.memProfile)
	if err != nil {
		return err
	}
	runtime.GC() // the profile holds what was allocated up to the last collection
	if err := pprof.Lookup("allocs").WriteTo(file, 0); err != nil {
		return err
	}
	return file.Close()
}
