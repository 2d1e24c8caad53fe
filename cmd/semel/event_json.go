package main

import (
	"time"

	"github.com/semel-go/semel/outbox"
)

// eventTime is something that may have happened to an event.
type eventTime struct {
	words, column string
	time          time.Time
}

func eventTimes(r *outbox.Record) []eventTime {
	return []eventTime{
		{"published", "published_at", r.PublishedAt},
		{"discarded", "discarded_at", r.DiscardedAt},
		{"in quarantine", "quarantined_at", r.QuarantinedAt},
		{"next attempt", "next_attempt_at", r.NextAttemptAt},
		{"first failed", "first_failed_at", r.FirstFailedAt},
	}
}

func eventObjects(records []outbox.Record) []object {
	objects := make([]object, 0, len(records))
	for i := range records {
		objects = append(objects, eventObject(&records[i]))
	}
	return objects
}

// eventObject is an event without payload and headers, for machines. The names
// are those of the columns, but for the two of the aggregate.
func eventObject(r *outbox.Record) object {
	out := object{
		"id": r.ID, "seq": r.Seq, "shard": r.Shard, "state": r.State, "attempts": r.Attempts,
		"aggregate_type": r.AggregateType, "aggregate_id": r.AggregateID, "type": r.Type,
	}
	if r.Version != 0 {
		out["version"] = r.Version
	}
	out.putTime("created_at", r.CreatedAt)
	for _, at := range eventTimes(r) {
		out.putTime(at.column, at.time)
	}
	out.putTime("occurred_at", r.OccurredAt)
	out.putText("correlation_id", r.CorrelationID)
	out.putText("causation_id", r.CausationID)
	out.putText("source", r.Source)
	out.putText("content_type", r.ContentType)
	out.putText("last_error", r.LastError)
	return out
}

// wholeEvent is eventObject with payload and headers.
func wholeEvent(r *outbox.Record) object {
	out := eventObject(r)
	content{r.Headers, r.Payload, r.Encoded, r.KeyID}.put(out)
	return out
}
