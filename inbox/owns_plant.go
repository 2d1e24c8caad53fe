//go:build plant_replay_without_claim

package inbox

// owns is the planted bug "replay-without-claim": a replay is handled because a
// person said so, whoever else has settled it.
func owns(t *task, claimed bool) bool { return claimed || t.replay != nil }
