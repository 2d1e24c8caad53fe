package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Broker is what the checks of queues need of a [Management].
type Broker interface {
	// Queue must return [ErrNoQueue] where there is none.
	Queue(ctx context.Context, vhost, name string) (Queue, error)
}

// ErrNoQueue is returned for a queue that does not exist.
var ErrNoQueue = errors.New("no such queue")

// Queue is what a queue does with its messages, by its arguments and by policies.
type Queue struct {
	Name, Type    string        // "classic", "quorum", "stream"
	TTL           time.Duration // negative: none
	DeliveryLimit int64         // negative: none
	ByDefault     bool          // nobody has set the limit
	DeadLetters   bool          // it has a dead letter exchange
}

const (
	queueCheck = "queue"

	// enoughDeliveries is the least limit that leaves room to find out which
	// message kills its process.
	enoughDeliveries = 4
)

// Queues compares how long queues keep messages with what each consumer
// remembers, and looks whether they drop messages that nobody has handled.
func Queues(ctx context.Context, broker Broker, vhost string, names []string, consumers []Consumer) []Finding {
	var findings []Finding
	for _, name := range names {
		q, err := broker.Queue(ctx, vhost, name)
		switch {
		case errors.Is(err, ErrNoQueue):
			findings = append(findings, Finding{
				Check: queueCheck, Object: name, Level: Problem,
				Found: fmt.Sprintf("the queue does not exist in vhost %s", vhost),
				Why:   "a consumer of it does not start", Do: "declare it, or correct its name or -vhost",
			})
			continue
		case err != nil:
			findings = append(findings, Unasked(queueCheck, name, err, "see whether the management API answers, and whether its user may see the queue"))
			continue
		case q.Type == "stream":
			findings = append(findings, Finding{
				Check: queueCheck, Object: name, Level: NotChecked,
				Found: "it is a stream, a log that can be read again from its beginning",
				Why:   "what is read again after its id was purged takes effect again",
				Do:    "compare its x-max-age with Config.Retention, or use a quorum queue",
			})
			continue
		}
		findings = append(findings, q.drops()...)
		for _, c := range consumers {
			findings = append(findings, q.compare(c))
		}
	}
	return findings
}

// drops tells whether the broker takes messages away that nobody has handled.
func (q Queue) drops() []Finding {
	var findings []Finding
	add := func(level Level, found, why, do string) {
		findings = append(findings, Finding{Check: queueCheck, Object: q.Name, Level: level, Found: found, Why: why, Do: do})
	}
	limit := fmt.Sprintf("a message is delivered again %d times at most", q.DeliveryLimit)
	if q.ByDefault {
		limit += " (RabbitMQ's default)"
	}
	switch {
	case q.DeliveryLimit < 0:
	case !q.DeadLetters:
		add(Problem, limit+", then it is dropped: there is no dead letter exchange",
			"a crash delivers all again that the consumer had fetched ahead: healthy messages reach the limit too, and then nobody ever sees them",
			"set dead-letter-exchange by a policy, or delivery-limit to -1 (RabbitMQ 4 and newer)")
	}
	if q.DeliveryLimit >= 0 && q.DeliveryLimit < enoughDeliveries {
		add(Warning, limit,
			"a message that kills its process is found at its third death, and a crash delivers all again that was fetched ahead: with it the healthy ones reach the limit first",
			fmt.Sprintf("raise delivery-limit to %d at least, better 20", enoughDeliveries))
	}
	if q.TTL >= 0 && !q.DeadLetters {
		add(Warning, fmt.Sprintf("a message that was not handled within %s is dropped: there is no dead letter exchange", span(q.TTL)),
			"while the consumers are away nobody sees what expires",
			"set dead-letter-exchange by a policy, unless such messages are worth nothing")
	}
	if len(findings) == 0 {
		add(OK, "it drops no message at a limit without a trace", "", "")
	}
	return findings
}

func (q Queue) compare(c Consumer) Finding {
	return history{
		check: queueCheck, name: q.Name,
		holds: q.TTL, what: "the queue keeps messages", lower: "set message-ttl of the queue by a policy, with a dead letter exchange,",
		endless:   Warning, // nobody lets messages wait for ever on purpose
		comesBack: "a copy that waits longer than Config.Retention takes effect again: RabbitMQ tells no time of a message, so it cannot be known as too old",
	}.compare(c)
}
