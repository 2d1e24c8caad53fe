package main

import (
	"strconv"
	"time"

	"github.com/semel-go/semel/inbox"
)

func inboxStatusObject(st *inbox.Status) object {
	consumers := make([]object, 0, len(st.Consumers))
	for i := range st.Consumers {
		s := &st.Consumers[i]
		o := object{
			"consumer": nameOr(s.Consumer, s.ConsumerID), "consumer_id": s.ConsumerID,
			"ready": s.Ready, "delayed": s.Delayed, "taken": s.Taken, "behind": s.Behind, "parked": s.Parked,
			"oldest_ready_seconds": nil, "oldest_seconds": nil, "next_due": nil,
		}
		if s.OldestReady > 0 {
			o["oldest_ready_seconds"] = s.OldestReady.Truncate(time.Millisecond).Seconds()
		}
		if s.Oldest > 0 {
			o["oldest_seconds"] = s.Oldest.Truncate(time.Millisecond).Seconds()
		}
		o.putTime("next_due", s.NextDue)
		consumers = append(consumers, o)
	}
	return object{"consumers": consumers, "at_least": st.AtLeast}
}

func storedTimes(r *inbox.Record) []eventTime {
	return []eventTime{
		{"stored", "stored_at", r.StoredAt},
		{"ready", "ready_at", r.ReadyAt},
		{"parked", "parked_at", r.ParkedAt},
		{"first failed", "first_failed_at", r.FirstFailedAt},
		{"last failed", "last_failed_at", r.LastFailedAt},
	}
}

func storedObjects(records []inbox.Record) []object {
	objects := make([]object, 0, len(records))
	for i := range records {
		objects = append(objects, storedObject(&records[i]))
	}
	return objects
}

// storedObject is a message of the inbox without payload and headers, for
// machines. The names are those of the columns.
func storedObject(r *inbox.Record) object {
	out := object{
		"seq": r.Seq, "consumer": nameOr(r.Consumer, r.ConsumerID), "consumer_id": r.ConsumerID, "claimed_as": uuidText(r.MessageID),
		"state": r.State, "attempts": r.Attempts, "errors": r.Errors, "damage": r.Damage,
	}
	if r.Fingerprint != nil {
		out["fingerprint"] = strconv.FormatInt(*r.Fingerprint, 10) // more digits than a JSON number is sure to keep
	}
	if r.DeadLetterID != 0 {
		out["dead_letter_id"] = r.DeadLetterID
	}
	for _, at := range storedTimes(r) {
		out.putTime(at.column, at.time)
	}
	out.putText("altered", r.Altered)
	out.putMessage(r.Message)
	return out
}

// wholeStored is storedObject with payload and headers, with the dead letter that
// holds the message and with what is before it.
func wholeStored(w *inbox.Whole) object {
	out := storedObject(&w.Record)
	content{w.Message.Headers, w.Message.Payload, w.Encoded, w.KeyID}.put(out)
	out["before"], out["count_before"] = storedObjects(w.Before), w.CountBefore
	if w.Letter != nil {
		out["dead_letter"] = summary(w.Letter)
	}
	return out
}
