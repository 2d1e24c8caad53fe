package main

import (
	"strconv"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// summary is a dead letter without payload and headers, for machines. The
// names are those of the columns.
func summary(l *dlq.Letter) object {
	out := object{
		"id": l.ID, "consumer": consumerName(l), "consumer_id": l.ConsumerID, "claimed_as": uuidText(l.MessageID),
		"reason": l.Reason, "state": l.State, "count": l.Count, "attempts": l.Attempts, "errors": l.Errors,
	}
	if l.Fingerprint != nil {
		out["fingerprint"] = strconv.FormatInt(*l.Fingerprint, 10) // more digits than a JSON number is sure to keep
	}
	if l.Outcome != 0 {
		out["outcome"] = l.Outcome.String()
	}
	out.putText("owner", l.Owner)
	out.putText("decided_by", l.DecidedBy)
	out.putText("altered", l.Altered)
	out.putTime("first_failed_at", l.FirstFailedAt)
	out.putTime("last_failed_at", l.LastFailedAt)
	out.putTime("created_at", l.CreatedAt)
	out.putTime("resolved_at", l.ResolvedAt)
	out.putTime("redacted_at", l.RedactedAt)
	out.putMessage(l.Message)
	return out
}

// putMessage sets what a message has besides headers and payload.
func (o object) putMessage(m *handler.Message) {
	o.put("message_id", []byte(m.ID))
	o.putText("message_type", m.Type)
	o.putText("key", string(m.Key))
	o.putText("correlation_id", m.CorrelationID)
	o.putText("causation_id", m.CausationID)
	o.putText("source", m.Source)
	o.putText("content_type", m.ContentType)
	o.putTime("occurred_at", m.OccurredAt)
	if m.Version != 0 {
		o["message_version"] = m.Version
	}
	from := &m.Origin
	origin := object{"redelivered": from.Redelivered}
	origin.putText("transport", from.Transport)
	origin.putText("topic", from.Topic)
	origin.putText("position", from.Position)
	origin.putText("exchange", from.Exchange)
	origin.putText("routing_key", from.RoutingKey)
	origin.putTime("time", from.Time)
	if from.Position != "" {
		origin["partition"], origin["offset"] = from.Partition, from.Offset
	}
	o["origin"] = origin
}

// whole is summary with payload and headers.
func whole(l *dlq.Letter) object {
	out := summary(l)
	content{l.Message.Headers, l.Message.Payload, l.Encoded, l.KeyID}.put(out)
	return out
}
