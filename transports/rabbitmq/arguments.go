package rabbitmq

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What a queue is declared with, in the broker's words.
const (
	argAutoDelete         = "auto_delete"
	argDurable            = "durable"
	argDeadLetterExchange = "x-dead-letter-exchange"
	argDeliveryLimit      = "x-delivery-limit"
	argExpires            = "x-expires"
	argMaxLength          = "x-max-length"
	argMaxLengthBytes     = "x-max-length-bytes"
	argMessageTTL         = "x-message-ttl"
	argOverflow           = "x-overflow"
	argQueueType          = "x-queue-type"
	argSingleActive       = "x-single-active-consumer"
)

// mostQuestions bounds an inspection. RabbitMQ knows about twenty arguments.
const mostQuestions = 30

var (
	errUnreadable = errors.New("the broker does not tell what this queue was declared with")
	errNoQueue    = errors.New("the queue is not there")
)

// inspection finds out what a queue was declared with. AMQP 0.9.1 has no
// request for that. But RabbitMQ, asked to declare a queue that is there,
// compares first, and refuses with the first argument that differs and its
// current value. So we ask for impossible values, and take over from each
// refusal what it tells, until nothing is left to ask.
//
// This changes nothing. Each question has a value that RabbitMQ makes no queue
// with, so that a queue which was deleted a moment ago does not come back. Each
// refusal ends a channel of its own and leaves a line in the broker's log.
type inspection struct {
	conn  *connection
	queue string

	durable    bool
	autoDelete bool
	found      map[string]any // by argument: its value, nil where it has none
}

func newInspection(conn *connection, queue string) *inspection {
	return &inspection{conn: conn, queue: queue, durable: true, found: map[string]any{}}
}

// impossible returns a value for an argument that is of the wrong type.
func impossible(argument string) any {
	if argument == argDeadLetterExchange {
		return int32(1)
	}
	return "semel asks"
}

// has reports whether the queue was declared with an argument.
func (i *inspection) has(argument string) bool { return i.found[argument] != nil }

// ask finds out about arguments, and about all that the broker compares before
// them. An argument that a queue of this type cannot have is not found.
func (i *inspection) ask(arguments ...string) error {
	if product := i.conn.amqp.Properties["product"]; product != "RabbitMQ" {
		return fmt.Errorf("%w: it is not RabbitMQ", errUnreadable) // another one may make a queue of a question
	}
	open := slices.DeleteFunc(arguments, func(a string) bool { _, known := i.found[a]; return known })
	for range mostQuestions {
		if !slices.ContainsFunc(open, func(a string) bool { return a != argDeliveryLimit }) {
			// Not all versions look at the limit's type when they make a queue,
			// so it is never asked for alone.
			return nil
		}
		args := amqp.Table(maps.Clone(i.found))
		maps.DeleteFunc(args, func(_ string, value any) bool { return value == nil })
		for _, argument := range open {
			args[argument] = impossible(argument)
		}
		argument, value, err := i.question(args)
		switch {
		case err != nil:
			return err
		case argument == "": // none of them is compared for this type of queue
			return nil
		case argument == argDurable:
			i.durable = value == "true"
		case argument == argAutoDelete:
			i.autoDelete = value == "true"
		default:
			i.found[argument] = value
			open = slices.DeleteFunc(open, func(a string) bool { return a == argument })
		}
	}
	return errUnreadable
}

// question returns the first argument that differs from args, and its value.
func (i *inspection) question(args amqp.Table) (argument string, value any, err error) {
	ch, err := i.conn.channel()
	if err != nil {
		return "", nil, err
	}
	err = ch.do("ask what the queue was declared with", func() error {
		_, err := ch.QueueDeclare(i.queue, i.durable, i.autoDelete, false, false, args)
		return err
	})
	if err == nil || !ch.IsClosed() {
		return "", nil, errors.Join(err, ch.do("close the channel", ch.Close))
	}
	if !hasCode(err, amqp.PreconditionFailed) {
		return "", nil, err
	}
	var refusal *amqp.Error
	errors.As(err, &refusal)
	return i.read(refusal.Reason)
}

// read takes a refusal apart: inequivalent arg 'x' for queue 'q' in vhost 'v':
// received none but current is none, or 'true', or the value '5' of type 'long'.
// The broker cuts it after 255 bytes, so a very long name may leave no value.
func (i *inspection) read(reason string) (argument string, value any, err error) {
	head, tail, ok := strings.Cut(reason, "' for queue '"+i.queue+"' in vhost '")
	_, invalid, _ := strings.Cut(head, " invalid arg '")
	_, argument, known := strings.Cut(head, " inequivalent arg '")
	switch {
	case invalid != "" || strings.Contains(reason, " invalid type '"): // it would have made one
		return "", nil, errNoQueue
	case !ok || !known:
		return "", nil, errUnreadable
	}
	_, current, ok := strings.Cut(tail, " but current is ")
	if !ok {
		return "", nil, errUnreadable
	}
	if current == "none" {
		return argument, nil, nil
	}
	kind := ""
	if typed, ok := strings.CutPrefix(current, "the value "); ok {
		at := strings.LastIndex(typed, " of type '")
		if at < 0 {
			return "", nil, errUnreadable
		}
		current, kind = typed[:at], strings.TrimSuffix(typed[at+len(" of type '"):], "'")
	}
	if argument == argSingleActive { // of all that we ask for, the one that is no text and no number
		kind = "bool"
	}
	if len(current) < 2 || current[0] != '\'' || current[len(current)-1] != '\'' {
		return "", nil, errUnreadable
	}
	value, err = argumentValue(current[1:len(current)-1], kind)
	return argument, value, err
}

// argumentValue returns what the broker compares equal to the value it showed.
// All whole numbers are of one kind to it.
func argumentValue(text, kind string) (any, error) {
	switch kind {
	case "longstr":
		return text, nil
	case "bool":
		return text == "true", nil
	default: // a kind of whole number, or not told
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err == nil:
			return n, nil
		case kind == "":
			return text, nil
		default:
			return nil, fmt.Errorf("%w: a value of type %q", errUnreadable, kind)
		}
	}
}
