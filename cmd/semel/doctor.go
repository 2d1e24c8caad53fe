package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/doctor"
)

// managementVariable is where RabbitMQ's management API may be named instead of
// -amqp-management, which others on the machine can read.
const managementVariable = "AMQP_MANAGEMENT_URL"

// askTimeout bounds all that is asked of a Kafka cluster.
const askTimeout = 30 * time.Second

// errProblem is a doctor who found one. It has told so.
var errProblem = errors.New("there is a problem")

// errUnlooked is a doctor who found no problem, and could not look at all that
// was asked for.
var errUnlooked = errors.New("not everything that was asked for could be looked at: see what is not checked")

// doctorCall is semel doctor with its command line.
type doctorCall struct {
	*call
	consumer, topics, group   string
	management, vhost, queues string
	retention                 age
	kafka                     kafkaFlags
	seeds                     []string
	asJSON                    bool
}

// examine looks for what would break the promise later. Exit code 2 says that
// there is a problem; whatever keeps it from finding out, the command line too, is
// a 1.
func examine(ctx context.Context, c *call) error {
	d := &doctorCall{call: c}
	c.needsDatabase()
	c.flags.StringVar(&d.consumer, "consumer", "", "only the consumer of this `name`, which need not have started yet (default all)")
	c.flags.Var(&d.retention, "retention", "suppose that what was handled is remembered for this `age`, as 14d (default what each consumer noted when it started)")
	c.flags.StringVar(&d.kafka.brokers, "kafka", "", "look at topics of Kafka too; the `addresses` of some of its brokers, host:port,... (default $"+kafkaVariable+")")
	c.kafkaSecurityFlags(&d.kafka)
	c.flags.StringVar(&d.topics, "topics", "", "Kafka: these `topics`, a,b,... (default those that the consumer's group has read)")
	c.flags.StringVar(&d.group, "group", "", "Kafka: the `name` of the group (default the consumer's)")
	c.flags.StringVar(&d.management, "amqp-management", "", "look at queues of RabbitMQ too; the `URL` of its management API, http://user@host:15672; better set $"+managementVariable+", it holds a password")
	c.flags.StringVar(&d.vhost, "vhost", "/", "RabbitMQ: the `name` of the virtual host")
	c.flags.StringVar(&d.queues, "queues", "", "RabbitMQ: these `queues`, a,b,...")
	c.flags.BoolVar(&d.asJSON, "json", false, "print JSON")
	err := d.run(ctx)
	var usage *usageError
	if errors.As(err, &usage) {
		return errors.New(usage.Error())
	}
	return err
}

func (d *doctorCall) run(ctx context.Context) error {
	if err := d.parseNoArguments(); err != nil {
		return err
	}
	withManagement := d.queues != "" // the variable alone asks for nothing
	if d.management == "" {
		d.management = os.Getenv(managementVariable)
	}
	withKafka := d.kafka.given() || os.Getenv(kafkaVariable) != ""
	given := map[string]bool{}
	d.flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case d.topics != "" && d.group != "":
		return d.usage("-topics and -group exclude each other")
	case !withKafka && (d.topics != "" || d.group != ""):
		return d.usage("no Kafka broker: give -kafka or set $%s, for example localhost:9092", kafkaVariable)
	case withManagement && d.management == "":
		return d.usage("-queues needs -amqp-management or $%s, for example http://user@localhost:15672", managementVariable)
	case given["amqp-management"] && !withManagement:
		return d.usage("say with -queues which queues to look at")
	case d.topics != "" && len(list(d.topics)) == 0, withManagement && len(list(d.queues)) == 0:
		return d.usage("-topics and -queues are names, as a,b")
	case given["retention"] && d.retention == 0:
		return d.usage("-retention must be more than 0")
	case d.consumer != "" && dedup.CheckConsumer(d.consumer) != nil:
		return d.usage("-consumer: %s", dedup.CheckConsumer(d.consumer))
	}
	var management *doctor.Management
	var kafka *kgo.Client
	if withManagement {
		var err error
		if management, err = doctor.NewManagement(d.management); err != nil {
			return d.usage("read the URL of the management API: %s", err)
		}
	}
	if withKafka {
		seeds, opts, err := d.kafkaOptions(&d.kafka)
		if err != nil {
			return err
		}
		d.seeds = seeds
		kafka, err = kgo.NewClient(append(opts, kgo.ClientID("semel-doctor"), kgo.RequestRetries(3), kgo.RetryTimeout(askTimeout/4))...)
		if err != nil {
			return d.usage("make a Kafka client for %s: %s", strings.Join(seeds, ","), err)
		}
		defer kafka.Close()
	}

	findings, consumers, err := d.examineDatabase(ctx)
	if err != nil {
		return err
	}
	if kafka != nil {
		findings = append(findings, d.examineKafka(ctx, kafka, consumers)...)
	}
	if management != nil {
		findings = append(findings, doctor.Queues(ctx, management, d.vhost, list(d.queues), consumers)...)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	doctor.Sort(findings)
	return d.tell(findings)
}

// list are the parts of a flag that names several things. Names may have spaces
// inside.
func list(text string) []string {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// examineDatabase makes all checks that need no broker. An error is one that keeps
// all of them from being made.
func (d *doctorCall) examineDatabase(ctx context.Context) (findings []doctor.Finding, consumers []doctor.Consumer, err error) {
	add := func(more ...doctor.Finding) { findings = append(findings, more...) }
	pooler, found, err := d.examinePooler(ctx)
	if err != nil {
		return nil, nil, err
	}
	add(found)
	err = d.withDatabase(ctx, func(conn *pgx.Conn) error {
		tables, usable := doctor.Schema(ctx, conn, d.schema)
		add(tables)
		var noted []dedup.ConsumerSettings
		if usable {
			add(doctor.Rights(ctx, conn, d.schema))
			var err error
			if noted, err = dedup.NewStore(d.schema).LoadSettings(ctx, conn); err != nil {
				add(doctor.Unread("settings", "", err))
			}
		}
		consumers = doctor.Consumers(noted, d.consumer, time.Duration(d.retention))
		if server, err := doctor.ReadServer(ctx, conn, d.schema); err != nil {
			add(doctor.Unread("server", "", err))
		} else {
			add(server.Durability()...)
			add(server.Vacuum()...)
			add(server.Pools(consumers, pooler.Between)...)
		}
		add(doctor.Settings(consumers)...)
		add(doctor.Retries(consumers)...)
		add(doctor.DeadLetters(consumers)...)
		if usable {
			add(doctor.Purges(ctx, conn, d.schema, consumers)...)
			add(doctor.Archive(ctx, conn, d.schema)...)
		}
		return nil
	})
	return findings, consumers, err
}

// examinePooler looks on connections of its own, which may be unfit afterwards.
func (d *doctorCall) examinePooler(ctx context.Context) (doctor.Pooler, doctor.Finding, error) {
	config, _, err := d.config()
	if err != nil {
		return doctor.Pooler{}, doctor.Finding{}, err
	}
	var pooler doctor.Pooler
	var looked error
	err = d.withDatabase(ctx, func(first *pgx.Conn) error {
		looked = d.withDatabase(ctx, func(second *pgx.Conn) (err error) {
			pooler, err = doctor.FindPooler(ctx, first, second)
			return err
		})
		return nil
	})
	if err != nil {
		return pooler, doctor.Finding{}, err
	}
	if looked != nil {
		return pooler, doctor.Unread("pooler", "", looked), nil
	}
	return pooler, pooler.Check(config.DefaultQueryExecMode), nil
}

// examineKafka looks at topics.
func (d *doctorCall) examineKafka(ctx context.Context, client *kgo.Client, consumers []doctor.Consumer) []doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return []doctor.Finding{doctor.Unasked("topic", "", fmt.Errorf("ask Kafka at %s: %w", strings.Join(d.seeds, ","), err), "see whether the brokers run, and whether -kafka names them")}
	}
	admin := kadm.NewClient(client)
	if d.topics != "" {
		return doctor.Topics(ctx, admin, list(d.topics), consumers)
	}
	return doctor.GroupTopics(ctx, admin, d.group, consumers)
}
