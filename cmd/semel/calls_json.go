package main

import (
	"time"

	"github.com/semel-go/semel/dedup/calls"
)

// callTime is something that may have happened to a call.
type callTime struct {
	words, column string
	time          time.Time
}

func callTimes(r *calls.Record) []callTime {
	return []callTime{
		{"written", "created_at", r.CreatedAt},
		{"changed", "updated_at", r.UpdatedAt},
		{"sent first", "sent_first_at", r.SentFirst},
		{"ended by", "deadline", r.Deadline},
		{"in hand until", "lease_until", r.LeaseUntil},
	}
}

// whenOfCall is when, also for what somebody has set by hand to no time at all: see
// [calls.Record].
func whenOfCall(t time.Time) string {
	switch t.UTC().Year() {
	case 9999:
		return "infinity, set by hand"
	case 1:
		return "-infinity, set by hand"
	}
	return when(t)
}

func callObjects(records []calls.Record) []object {
	objects := make([]object, 0, len(records))
	for i := range records {
		objects = append(objects, callObject(&records[i]))
	}
	return objects
}

// callObject is a call without its result, for machines. The names are those of the
// columns.
func callObject(r *calls.Record) object {
	out := object{
		"consumer": nameOr(r.Consumer, r.ConsumerID), "consumer_id": r.ConsumerID, "claimed_as": r.MessageID.String(),
		"step": r.Step, "state": r.State.String(), "under_way": r.UnderWay, "generation": r.Generation, "attempts": r.Attempts,
	}
	out.put("message_id", []byte(r.Message))
	out.putText("idempotency_key", r.Key)
	for _, at := range callTimes(r) {
		out.putTime(at.column, at.time)
	}
	out.putText("error", r.Error)
	out.putText("resolved_by", r.ResolvedBy)
	if r.LetterID != 0 {
		out["dead_letter_id"], out["dead_letter_state"] = r.LetterID, r.LetterState
	}
	return out
}

// wholeCall is callObject with the result.
func wholeCall(r *calls.Record) object {
	out := callObject(r)
	switch {
	case r.State != calls.Done:
	case r.Encoded:
		out["result_encoded"] = object{"key_id": r.KeyID, "bytes": len(r.Result)}
	default:
		out.put("result", r.Result)
	}
	return out
}
