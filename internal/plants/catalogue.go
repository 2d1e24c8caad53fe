package main

import "strings"

// plant is a known bug: a file with the build tag plant_NAME replaces one
// function. All its proofs must catch it.
type plant struct {
	name   string
	proofs []proof
}

func (p plant) tag() string { return "plant_" + strings.ReplaceAll(p.name, "-", "_") }

// catalogue is all plants.
func catalogue() []plant {
	return []plant{
		{"no-claim", []proof{ // every copy believes that it is the first
			unit("./inbox", "TestConcurrency_FiftyCopiesInTwoProcesses"),
			unit("./inbox", "TestCut"),
			unit("./internal/systemtest", "TestCut_RabbitMQ"),
			chaos("memory", "after-commit", 2, "doubled"),
		}},
		{"ack-before-commit", []proof{
			unit("./inbox", "TestCut_Run"),
			chaos("memory", "before-commit", 6, "lost"), // a kill that finds the message acknowledged, and not yet committed
			chaos("rabbitmq", "after-handler", 2, "lost"),
		}},
		{"record-before-work", []proof{
			unit("./inbox", "TestProcess_FailedThenRedelivered"),
			unit("./inbox", "TestCut_Run"),
			chaos("memory", "after-handler", 2, "lost"),
		}},
		{"outage-spends-attempts", []proof{ // a breaker that is open is a failure of the message
			unit("./inbox", "TestDependency_QuickAttemptsGivenBack"),
			unit("./inbox", "TestGate"),
		}},
		{"assume-committed", []proof{ // a COMMIT without an answer counts as done
			unit("./inbox", "TestJudgeCommit"),
			unit("./inbox", "TestFault_CommitAnswerLost"),
			unit("./inbox", "TestCut"),
		}},
		{"no-lanes", []proof{ // messages of a key run at once
			unit("./inbox", "TestRun_OrderPerKey"),
			chaos("memory", "after-claim", 10, "reordered"),
		}},
		{"settle-unhandled", []proof{ // what a drain gives back is acknowledged
			unit("./inbox", "TestRun_DrainLetsRunningFinish"),
			unit("./inbox", "TestCut_Run"),
			chaos("memory", "mid-drain", 2, "lost"),
		}},
		{"ack-high-water", []proof{ // commits past a record in flight
			unit("./transports/kafka", "TestSource_CommitsTheLowestInFlight"),
			chaos("kafka", "after-claim", 16, "lost"), // lost only if a commit came between the later one and the kill
		}},
		{"multiple-ack", []proof{ // acknowledges earlier deliveries too
			unit("./transports/rabbitmq", "TestSource_LaterSettledKeepsEarlier"),
			chaos("rabbitmq", "after-claim", 2, "lost"),
		}},
		{"not-lowest-seq", []proof{ // a worker takes what waits behind its key
			unit("./inbox", "TestStrict_PoisonAtTheHead"),
			unit("./inbox", "TestStrict_ManyBehind"),
		}},
		{"overtake-inbox", []proof{ // what a source delivers does not look into the inbox
			unit("./inbox", "TestStrict_PoisonAtTheHead"),
			chaos("memory", "stored", 2, "reordered"),
		}},
		{"replay-without-claim", []proof{ // whoever replays believes to be the only one
			unit("./inbox", "TestReplay_Twice"),
		}},
		{"guard-lets-older-run", []proof{ // an older state is written over a newer one
			unit("./dedup", "TestVersionGuard_ManyAtOnce"),
			unit("./inbox", "TestVersionGuard_DeletedBeforeUpdated"),
			unit("./inbox", "TestVersionGuard_TwoProcesses"),
		}},
		{"mark-before-confirm", []proof{
			unit("./outbox", "TestRelay_MarksAfterTheConfirm"),
			relays("after-send", "(lost|reordered)"),
		}},
		{"two-owners", []proof{ // a relay takes every lease for its own
			unit("./outbox", "TestRelay_TwoRelaysKeepOrder"),
		}},
		{"order-by-created-at", []proof{
			unit("./outbox", "TestRelay_ClockSetBack"),
		}},
		{"no-intent", []proof{ // a call is made before the ledger knows of it
			unit("./dedup/calls", "TestDo_IntentFirst"),
			clients("after-send", 2),
		}},
		{"new-key-per-attempt", []proof{ // a repetition that the provider takes for another call
			unit("./dedup/calls", "TestDo_AnswerLost"),
			clients("after-answer", 2),
		}},
		{"asked-while-running", []proof{ // was it done, asked while it is being done
			unit("./dedup/calls", "TestUnknown_NotAskedWhileUnderWay"),
			clients("after-send", 3),
		}},
		{"delete-before-verify", []proof{ // what is about to be archived is deleted
			unit("./outbox", "TestPurge_ArchiveFails"),
			archives("object-written"),
		}},
		{"no-lock", []proof{ // writers that only insert, and do not hold the aggregate
			{pkg: "./internal/chaos", test: "TestChaos_Relays", env: []string{"CHAOS_POINT=after-read"}, shows: `(?m)CHAOS broker=.* reordered=[1-9]`},
		}},
	}
}
