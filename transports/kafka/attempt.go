package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// minDeliveryTimeout is the least that the client takes.
const minDeliveryTimeout = time.Second

// WithinAttempt returns client options for a publisher whose attempts take no
// longer than this, such as a relay's AttemptTimeout (5 s). The client's own
// retries then end within the attempt: what it still holds afterwards would be
// written later, beside the next attempt at the same message. And a broker that
// is back is found within one; with the client's defaults that takes longer than
// an attempt, which fails and leaves a copy again. And nothing lingers: who
// publishes hands over what there is, and waits.
func WithinAttempt(attempt time.Duration) []kgo.Opt {
	return []kgo.Opt{
		kgo.RecordDeliveryTimeout(max(attempt*4/5, minDeliveryTimeout)),
		kgo.RetryBackoffFn(func(int) time.Duration { return attempt / 10 }),
		kgo.MetadataMinAge(min(attempt/4, time.Second)),
		kgo.ProducerLinger(0),
	}
}
