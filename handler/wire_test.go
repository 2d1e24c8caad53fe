package handler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// texts makes headers of names and values in turn.
func texts(pairs ...string) handler.Headers {
	var h handler.Headers
	for i := 0; i < len(pairs); i += 2 {
		h = append(h, handler.Header{Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	return h
}

func TestMessage_ReadHeaders_ID(t *testing.T) {
	t.Parallel()

	kafkaEvent := []string{"ce_specversion", "1.0", "ce_id", "7", "ce_source", "/shop", "ce_type", "paid"}
	with := func(h []string, more ...string) handler.Headers { return texts(append(h[:len(h):len(h)], more...)...) }
	without := func(name string) handler.Headers {
		var h handler.Headers
		for _, header := range texts(kafkaEvent...) {
			if header.Name != name {
				h = append(h, header)
			}
		}
		return h
	}

	tests := []struct {
		name      string
		sourceSet string // what the transport carries outside the headers
		headers   handler.Headers
		want      string
	}{
		{name: "None", headers: texts("x", "y"), want: ""},
		{name: "NoHeaders", sourceSet: "property", want: "property"},
		{name: "MessageID", headers: texts("message-id", "ours"), want: "ours"},
		{name: "MessageIDBeforeAll", sourceSet: "property", headers: with(kafkaEvent, "id", "debezium", "message-id", "ours"), want: "ours"},
		{name: "SourceSetBeforeCloudEvent", sourceSet: "property", headers: with(kafkaEvent, "id", "debezium"), want: "property"},
		{name: "CloudEventBeforeDebezium", headers: with(kafkaEvent, "id", "debezium"), want: "/shop 7"},
		{name: "Debezium", headers: texts("id", "debezium"), want: "debezium"},
		{name: "FirstOfRepeats", headers: texts("message-id", "a", "message-id", "b"), want: "a"},
		{name: "EmptyIsNone", headers: texts("message-id", "", "id", "debezium"), want: "debezium"},
		{name: "NilIsNone", headers: handler.Headers{{Name: "message-id"}, {Name: "id", Value: []byte("debezium")}}, want: "debezium"},
		{name: "NamesAreExact", headers: texts("Message-Id", "a", "ID", "b"), want: ""},
		{name: "NothingIsTrimmed", headers: texts("message-id", " a\n"), want: " a\n"},
		{name: "BytesAreKept", headers: texts("message-id", "\xff\x00"), want: "\xff\x00"},
		{name: "AMQPUnderscore", headers: texts("cloudEvents_specversion", "1.0", "cloudEvents_id", "7", "cloudEvents_source", "/shop", "cloudEvents_type", "paid"), want: "/shop 7"},
		{name: "AMQPColon", headers: texts("cloudEvents:specversion", "1.0", "cloudEvents:id", "7", "cloudEvents:source", "/shop", "cloudEvents:type", "paid"), want: "/shop 7"},
		{name: "PrefixesDoNotMix", headers: texts("ce_specversion", "1.0", "cloudEvents_id", "7", "cloudEvents_source", "/shop", "ce_type", "paid"), want: ""},
		{name: "NoSpecVersion", headers: without("ce_specversion"), want: ""},
		{name: "NoID", headers: without("ce_id"), want: ""},
		{name: "NoSource", headers: without("ce_source"), want: ""},
		{name: "NoType", headers: without("ce_type"), want: ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			msg := &handler.Message{ID: tt.sourceSet, Headers: tt.headers}
			msg.ReadHeaders()

			require.Equal(t, tt.want, msg.ID)
		})
	}
}

func TestMessage_ReadHeaders_Fields(t *testing.T) {
	t.Parallel()

	occurred := time.Date(2024, 2, 29, 12, 30, 15, 0, time.UTC)
	all := texts("message-type", "order.paid", "message-key", "order_42", "message-version", "7", "correlation-id", "corr_1",
		"causation-id", "evt_0", "source", "/shop", "content-type", "application/json", "occurred-at", "2024-02-29T13:30:15+01:00")
	event := texts("ce_specversion", "1.0", "ce_id", "7", "ce_source", "/shop", "ce_type", "order.paid", "ce_time", "2024-02-29T12:30:15Z")
	full := handler.Message{
		Type: "order.paid", Key: []byte("order_42"), Version: 7, CorrelationID: "corr_1",
		CausationID: "evt_0", Source: "/shop", ContentType: "application/json", OccurredAt: occurred,
	}
	set := handler.Message{
		Type: "t", Key: []byte("k"), Version: 1, CorrelationID: "c", CausationID: "d", Source: "s", ContentType: "u",
		OccurredAt: occurred.Add(time.Hour),
	}

	tests := []struct {
		name    string
		before  handler.Message
		headers handler.Headers
		want    handler.Message
	}{
		{name: "All", headers: all, want: full},
		{name: "WhatTheSourceSetStays", before: set, headers: all, want: set},
		{name: "CloudEvent", headers: event, want: handler.Message{ID: "/shop 7", Type: "order.paid", Source: "/shop", OccurredAt: occurred}},
		{
			name: "OursBeforeCloudEvent", headers: append(texts("message-type", "a", "source", "b", "occurred-at", "2024-02-29T12:30:15Z", "ce_time", "2020-01-01T00:00:00Z"), event...),
			want: handler.Message{ID: "/shop 7", Type: "a", Source: "b", OccurredAt: occurred},
		},
		{
			name: "UnreadableTimeFallsBack", headers: append(texts("occurred-at", "yesterday"), event...),
			want: handler.Message{ID: "/shop 7", Type: "order.paid", Source: "/shop", OccurredAt: occurred},
		},
		{name: "UnreadableStaysEmpty", headers: texts("message-version", "seven", "occurred-at", "yesterday"), want: handler.Message{}},
		{name: "VersionTooLarge", headers: texts("message-version", "9223372036854775808"), want: handler.Message{}},
		{name: "EmptyKeyIsNone", headers: texts("message-key", ""), want: handler.Message{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			msg := tt.before
			msg.Headers = tt.headers
			msg.ReadHeaders()

			require.Equal(t, tt.headers, msg.Headers, "headers stay as they came")
			require.True(t, tt.want.OccurredAt.Equal(msg.OccurredAt))
			msg.Headers, msg.OccurredAt, tt.want.OccurredAt = nil, time.Time{}, time.Time{}
			require.Equal(t, tt.want, msg)
		})
	}
}

func TestMessage_WriteHeaders(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		msg  handler.Message
		want handler.Headers
	}{
		{name: "Nothing", want: handler.Headers{}},
		{name: "OwnHeadersStay", msg: handler.Message{Headers: texts("b", "1", "a", "2", "b", "3")}, want: texts("b", "1", "a", "2", "b", "3")},
		{name: "FieldsFollow", msg: handler.Message{ID: "evt_1", Type: "paid", Headers: texts("x", "y")}, want: texts("x", "y", "message-id", "evt_1", "message-type", "paid")},
		{name: "FieldsReplace", msg: handler.Message{ID: "new", Headers: texts("message-id", "old", "x", "y", "message-id", "older")}, want: texts("x", "y", "message-id", "new")},
		{name: "EmptyFieldReplacesNothing", msg: handler.Message{Headers: texts("message-type", "paid")}, want: texts("message-type", "paid")},
		{name: "TimeInUTC", msg: handler.Message{OccurredAt: time.Date(2024, 2, 29, 13, 30, 15, 5, time.FixedZone("", 3600))}, want: texts("occurred-at", "2024-02-29T12:30:15.000000005Z")},
		{name: "YearThatHasNoText", msg: handler.Message{OccurredAt: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, want: handler.Headers{}},
		{name: "TraceStays", msg: handler.Message{ID: "evt_1", Headers: texts("traceparent", "00-1")}, want: texts("traceparent", "00-1", "message-id", "evt_1")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			before := append(handler.Headers(nil), tt.msg.Headers...)

			require.Equal(t, tt.want, tt.msg.WriteHeaders())
			require.Equal(t, before, tt.msg.Headers, "the message's own are not changed")
		})
	}
}

// FuzzReadHeaders reads any two headers beside all that a CloudEvent needs,
// writes the message again and reads that: nothing panics, and what was
// understood once is understood again.
func FuzzReadHeaders(f *testing.F) {
	f.Add("message-id", []byte("evt_1"), "id", []byte("x"))
	f.Add("message-version", []byte("007"), "occurred-at", []byte("2024-02-29T13:30:15+01:00"))
	f.Add("occurred-at", []byte("9999-12-31T23:59:59-23:59"), "ce_time", []byte("2024-02-29T13:30:15Z"))
	f.Add("occurred-at", []byte("0000-01-01T00:00:00+23:59"), "ce_id", []byte(nil))
	f.Add("message-key", []byte("\xff\x00"), "message-type", []byte(""))
	f.Fuzz(func(t *testing.T, name1 string, value1 []byte, name2 string, value2 []byte) {
		headers := handler.Headers{{Name: name1, Value: value1}, {Name: name2, Value: value2}}
		headers = append(headers, texts("ce_specversion", "1.0", "ce_id", "7", "ce_source", "/shop", "ce_type", "paid", "ce_time", "2020-01-01T00:00:00Z")...)
		first := handler.Message{Headers: headers}
		first.ReadHeaders()

		second := handler.Message{Headers: first.WriteHeaders()}
		second.ReadHeaders()

		require.NotEmpty(t, first.ID)
		require.True(t, first.OccurredAt.Equal(second.OccurredAt), "%s became %s", first.OccurredAt, second.OccurredAt)
		first.Headers, second.Headers = nil, nil
		first.OccurredAt, second.OccurredAt = time.Time{}, time.Time{}
		require.Equal(t, first, second)
	})
}

// FuzzWriteHeaders: a message that was written arrives as it was.
func FuzzWriteHeaders(f *testing.F) {
	f.Add("evt_1", "order.paid", []byte("order_42"), int64(7), "corr", "evt_0", "/shop", "application/json", int64(1_709_209_815))
	f.Add("", "", []byte(nil), int64(0), "", "", "", "", int64(0))
	f.Add("\xff", "\n", []byte{0}, int64(-1), " ", "\x00", "", "", int64(-1))
	f.Fuzz(func(t *testing.T, id, kind string, key []byte, version int64, correlation, causation, source, content string, seconds int64) {
		if len(key) == 0 {
			key = nil
		}
		want := handler.Message{
			ID: id, Type: kind, Key: key, Version: version, CorrelationID: correlation, CausationID: causation, Source: source, ContentType: content,
			OccurredAt: time.Unix(seconds%(1<<37), 0).UTC(), // until the year 6325
		}
		if seconds < 0 {
			want.OccurredAt = time.Time{}
		}

		got := handler.Message{Headers: want.WriteHeaders()}
		got.ReadHeaders()

		got.Headers = nil
		require.Equal(t, want, got)
	})
}
