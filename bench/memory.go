package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/transports/kafka"
)

// What the process whose memory is measured is told.
const (
	childArgument  = "consume"
	schemaVariable = "SEMEL_BENCH_SCHEMA"
	topicVariable  = "SEMEL_BENCH_TOPIC"
	groupVariable  = "SEMEL_BENCH_GROUP"
)

// memoryRounds is for how many rounds the process runs. What it holds does not
// grow after the first seconds.
const memoryRounds = 6

// memory measures a process that runs a source while far more messages wait
// than it may hold.
func (b *bench) memory(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	t, err := newTopic(ctx)
	if err != nil {
		return result{}, err
	}
	defer t.drop()
	for left := b.waiting; left > 0; {
		n := min(left, 50_000)
		if err := t.publish(ctx, newMessages(n)); err != nil {
			return result{}, err
		}
		left -= n
	}
	peak, handled, err := b.watchChild(ctx, db, t)
	if err != nil {
		return result{}, err
	}
	if handled == 0 || handled >= b.waiting {
		return result{}, fmt.Errorf("%d of %d messages were handled: the topic must neither stand still nor run dry", handled, b.waiting)
	}
	return result{
		value: peak, digits: 1,
		details: []string{
			fmt.Sprintf("VmHWM of a process that handled %d of %d waiting messages in %s", handled, b.waiting, memoryRounds*b.round),
			fmt.Sprintf("%d bytes each, %d partitions, %d workers", payloadBytes, partitions, workers),
		},
	}, nil
}

// watchChild runs this program again as a consumer, ends it by closing its
// input, and returns the most memory it held, in MiB.
func (b *bench) watchChild(ctx context.Context, db *database, t *topic) (peak float64, handled int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, program, childArgument)
	cmd.Env = append(os.Environ(), schemaVariable+"="+db.schema, topicVariable+"="+t.name, groupVariable+"="+t.group())
	cmd.Stderr = b.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, fmt.Errorf("start a consumer: %w", err)
	}
	stop := time.AfterFunc(memoryRounds*b.round, func() { _ = stdin.Close() })
	defer stop.Stop()
	var kilobytes float64
	if _, err := fmt.Fscan(bufio.NewReader(stdout), &kilobytes, &handled); err != nil {
		cancel()
		return 0, 0, errors.Join(fmt.Errorf("read what the consumer says: %w", err), cmd.Wait())
	}
	return kilobytes / 1024, handled, cmd.Wait()
}

// consumeAsChild runs a source until its input ends, and says how much memory
// the process had at its highest, and how many messages it has handled.
func consumeAsChild(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	db := &database{schema: os.Getenv(schemaVariable)}
	pool, err := newPool(ctx, db.schema, workers, nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	in, err := db.inbox(pool, "bench", work, nil)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	src := kafka.NewSource(
		kafka.SourceConfig{Group: os.Getenv(groupVariable), Topics: []string{os.Getenv(topicVariable)}, Logger: silent()},
		kgo.SeedBrokers(strings.Split(os.Getenv(brokersVariable), ",")...))
	if err := in.Run(ctx, src); err != nil {
		return err
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, peak, in.Stats().Processed)
	return nil
}

// peakMemory is the most memory this process has held, in kilobytes.
func peakMemory() (int, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read the process's status (Linux only): %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			return strconv.Atoi(fields[1])
		}
	}
	return 0, errors.New("read the process's status: it has no VmHWM")
}
