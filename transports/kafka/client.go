package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	connectTimeout = 10 * time.Second
	requestTimeout = 10 * time.Second // on top of what a request itself may take
	fetchBytes     = 16 << 20         // per broker
	partitionBytes = 256 << 10        // how far a window overshoots; a larger record still comes, alone
	// A fetch that waits for records holds up partitions that were assigned, or
	// let go on, since it was sent: beside idle partitions a busy one would stand
	// still for so long whenever its window was full.
	fetchWait = 100 * time.Millisecond
)

// newClient makes the client of m. It has no topics yet and so stays out of
// the group.
func newClient(ctx context.Context, m *member, opts []kgo.Opt) (*kgo.Client, error) {
	all := slices.Concat(defaults(), opts, []kgo.Opt{
		kgo.WithContext(context.WithoutCancel(ctx)), // the last commit comes after the end of ctx
		kgo.ConsumerGroup(m.source.config.Group),
		kgo.ConsumeTopics(),
		kgo.DisableAutoCommit(),
		kgo.KeepControlRecords(), // or a commit sticks right before the end of a transaction
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.assigned(ctx, p) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.revoked(p) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.lost(p) }),
		kgo.OnOffsetsFetched(m.offsetsFetched),
		kgo.AdjustFetchOffsetsFn(nil), // a group goes on where it has committed
	})
	client, err := kgo.NewClient(all...)
	if err != nil {
		return nil, fmt.Errorf("build the Kafka client from its options: %w", err)
	}
	if err := refuse(client); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func defaults() []kgo.Opt {
	return []kgo.Opt{
		kgo.ClientID("semel"),
		kgo.DialTimeout(connectTimeout),
		kgo.RequestTimeoutOverhead(requestTimeout),
		kgo.FetchMaxWait(fetchWait),
		kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxPartitionBytes(partitionBytes),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // what was aborted never happened
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), // never skips; see the package comment
	}
}

// refuse returns an error for options under which the source could not keep
// its promises.
func refuse(client *kgo.Client) error {
	var errs []error
	if client.OptValue(kgo.BlockRebalanceOnPoll) == true {
		errs = append(errs, errors.New("kgo.BlockRebalanceOnPoll is set: leave it out, the source keeps its own order between polls and rebalances"))
	}
	if client.OptValue(kgo.ConsumeRegex) == true {
		errs = append(errs, errors.New("kgo.ConsumeRegex is set: leave it out and name every topic in SourceConfig.Topics"))
	}
	if client.OptValue(kgo.ConsumeResetOffset) == kgo.NewOffset().AtEnd() {
		errs = append(errs, errors.New("kgo.ConsumeResetOffset is the end of the log, which would skip messages: use the start or kgo.NoResetOffset"))
	}
	return errors.Join(errs...)
}
