package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fatal is what no waiting mends, and what to do about it. Everything else is
// waited out.
var fatal = [...]struct {
	err  *kerr.Error
	todo string
}{
	{kerr.TopicAuthorizationFailed, "grant the client Read and Describe on the topic"},
	{kerr.GroupAuthorizationFailed, "grant the client Read on the consumer group"},
	{kerr.ClusterAuthorizationFailed, "grant the client access to the cluster"},
	{kerr.SaslAuthenticationFailed, "check the user and the password given with kgo.SASL"},
	{kerr.UnsupportedSaslMechanism, "use a mechanism with kgo.SASL that the brokers accept"},
	{kerr.InvalidTopicException, "correct the name in SourceConfig.Topics"},
	{kerr.InvalidGroupID, "correct SourceConfig.Group"},
	{kerr.InvalidSessionTimeout, "choose a kgo.SessionTimeout between the brokers' group.min.session.timeout.ms and group.max.session.timeout.ms"},
	{kerr.InconsistentGroupProtocol, "give all members of the group the same balancers, and let no other kind of client join it"},
	{kerr.FencedInstanceID, "another process runs with the same kgo.InstanceID: give every process its own"},
	{kerr.UnreleasedInstanceID, "another process runs with the same kgo.InstanceID: give every process its own"},
	// Only with kgo.NoResetOffset.
	{kerr.OffsetOutOfRange, "the committed offset is not in the log any more: set the group's offset to where it shall go on, or leave out kgo.NoResetOffset"},
	// The client tried long enough to exclude a topic that is just being made.
	{kerr.UnknownTopicID, "the topic was deleted or made anew: start again to consume the new one"},
}

// verdict says whether waiting can mend err, and if not, what can.
func verdict(err error) (todo string, isFatal bool) {
	for _, f := range fatal {
		if errors.Is(err, f.err) {
			return f.todo, true
		}
	}
	return "", false
}

// fetchFailed handles an error that the client returned from a poll.
func (m *member) fetchFailed(p partition, err error) {
	var loss *kgo.ErrDataLoss
	var session *kgo.ErrGroupSession
	todo, isFatal := verdict(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, kgo.ErrClientClosed):
		// a poll that was interrupted
	case errors.As(err, &session) && isFatal:
		m.fail(fmt.Errorf("join the group: %w: %s", session.Err, todo))
	case errors.As(err, &session):
		m.report.problem("the group could not be joined or was lost; joining again", session.Err,
			"see whether the brokers are well and whether handlers keep rebalances waiting")
	case errors.As(err, &loss):
		m.report.problem("the brokers lost records", err, "see the brokers' logs: an unclean leader election loses records")
	case isFatal:
		m.fail(fmt.Errorf("fetch %s/%d: %w: %s", p.topic, p.id, err, todo))
	default:
		m.report.problem("a partition could not be fetched; trying again", err, "see whether the brokers are well",
			slog.String("topic", p.topic), slog.Int("partition", int(p.id)))
	}
}
