// Package kafka takes messages from Apache Kafka as a member of a consumer
// group, and publishes messages to it.
//
//	source := kafka.NewSource(kafka.SourceConfig{Group: "shipping", Topics: []string{"payments"}},
//		kgo.SeedBrokers("localhost:9092"))
//	err := in.Run(ctx, source)
//
//	publisher := kafka.NewPublisher(client).To("payments")
//
// # Guarantees of the source
//
// What is committed for a partition is its lowest record in flight, or the
// highest record plus one when none is; never the last one that finished. A
// record that is not settled is therefore never behind the committed offset,
// and gaps in the offsets (compaction, transactions) hold nothing up. Offsets
// are committed every half second, at the end of an assignment, and when half
// a window waits for it; one commit at a time, never backwards.
//
// Between the committed offset and the newest record fetched lies at most a
// window (SourceConfig.WindowRecords and WindowBytes), give or take one fetch.
// The partitions of a source share it evenly; one whose share is full is not
// fetched until half of that is free.
//
// # Not guaranteed
//
// Records between the committed offset and the point of a crash come again.
// Records that the topic's retention deleted before they were fetched are
// lost: the source goes on with the oldest record that is left, logs an error,
// and counts them (SourceStats.RecordsLost). When the log ends before the committed
// offset (an unclean leader election, a topic made anew), the source reads the
// partition from its start again, since only that skips nothing; this too is
// logged as an error and counted (SourceStats.Rewinds). With
// kgo.ConsumeResetOffset(kgo.NoResetOffset()) Run ends with an error instead.
//
// A topic that was deleted and made anew while it was consumed ends Run with
// an error: its offsets mean other records now.
//
// # After a crash
//
// The metadata of a commit says whether its owner runs or has drained. Nothing
// of a partition is handed out before the broker has a commit that says
// "semel running"; for a new group it stands at the first record. The last
// commit of a partition that is given back, or of a Run that ends, says
// "semel drained" if nothing of it is out any more.
//
// Who is assigned a partition that was not drained marks what its last owner
// may have had in flight as Origin.Redelivered: the first WindowRecords, and
// one poll of up to 1,000, of what was in the log by then. It counts on equal
// windows in all processes. A commit whose metadata is somebody else's marks
// nothing.
//
// # Rebalances
//
// When a partition is revoked, its Revoked channel is closed, no more of it is
// delivered, what is out may finish for SourceConfig.DrainTimeout, and what is
// settled is committed before the partition goes. Heartbeats go on meanwhile,
// and so do the other partitions. A partition that is lost (the group gave this
// member up) is dropped without waiting and without a commit, so to its next
// owner it looks like that of a process that died.
//
// # Outages
//
// A broker that is away and a topic that does not exist are waited for; both
// are logged as errors, at once and every half minute. What waiting does not
// mend ends Run with an error: a topic or group that is forbidden, credentials
// that are refused, another process with the same static member id.
//
// # Shutdown
//
// When its context ends, Run takes no more, waits for what is out, commits, and
// leaves the group. If the broker is away by then, it gives up after some
// seconds; what could not be committed comes again.
//
// # Topic ids
//
// A record's Origin.Position is topic id, partition and offset, so that it
// differs after a topic was made anew. Brokers before Kafka 3.1 send no topic
// id; Position is empty then.
package kafka
