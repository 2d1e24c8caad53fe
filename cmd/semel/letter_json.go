package main

import (
	"strconv"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// summary is a dead letter without payload and headers, for machines. The
// names are those of the columns.
func summary(l *dlq.Letter) object {
	m, o := l.Message, &l.Message.Origin
	out := object{
		"id": l.ID, "consumer": consumerName(l), "consumer_id": l.ConsumerID, "claimed_as": uuidText(l.MessageID),
		"reason": l.Reason, "state": l.State, "count": l.Count, "attempts": l.Attempts, "errors": l.Errors,
	}
	if l.Fingerprint != nil {
		out["fingerprint"] = strconv.FormatInt(*l.Fingerprint, 10) // more digits than a JSON number is sure to keep
	}
	out.put("message_id", []byte(m.ID))
	out.putText("owner", l.Owner)
	out.putText("decided_by", l.DecidedBy)
	out.putText("altered", l.Altered)
	out.putTime("first_failed_at", l.FirstFailedAt)
	out.putTime("last_failed_at", l.LastFailedAt)
	out.putTime("created_at", l.CreatedAt)
	out.putTime("resolved_at", l.ResolvedAt)
	out.putTime("redacted_at", l.RedactedAt)
	out.putText("message_type", m.Type)
	out.putText("key", string(m.Key))
	out.putText("correlation_id", m.CorrelationID)
	out.putText("causation_id", m.CausationID)
	out.putText("source", m.Source)
	out.putText("content_type", m.ContentType)
	out.putTime("occurred_at", m.OccurredAt)
	if m.Version != 0 {
		out["message_version"] = m.Version
	}
	origin := object{"redelivered": o.Redelivered}
	origin.putText("transport", o.Transport)
	origin.putText("topic", o.Topic)
	origin.putText("position", o.Position)
	origin.putText("exchange", o.Exchange)
	origin.putText("routing_key", o.RoutingKey)
	origin.putTime("time", o.Time)
	if o.Position != "" {
		origin["partition"], origin["offset"] = o.Partition, o.Offset
	}
	out["origin"] = origin
	return out
}

// whole is summary with payload and headers.
func whole(l *dlq.Letter) object {
	out := summary(l)
	out.putContent(l.Message.Headers, l.Message.Payload)
	return out
}

// putContent sets headers and payload.
func (o object) putContent(hs handler.Headers, payload []byte) {
	o.put("payload", payload)
	headers := make([]object, 0, len(hs))
	for _, h := range hs {
		header := object{}
		header.put("name", []byte(h.Name))
		header.put("value", h.Value)
		if h.Tag != 0 {
			header["tag"] = string(rune(h.Tag))
		}
		headers = append(headers, header)
	}
	o["headers"] = headers
}
