package outbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// Rows that no writer of ours makes: times without end, arrays with nothing in
// them or in two dimensions. A row that cannot be read would keep all events from
// being read that come with it, of all aggregates, for ever.
func TestRelay_RowsByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `
		INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, payload, occurred_at, version, header_names, header_values, header_tags)
		VALUES
			(gen_random_uuid(), 'order', 'for ever', 'OrderPaid', '1', 'infinity', 1, NULL, NULL, NULL),
			(gen_random_uuid(), 'order', 'since ever', 'OrderPaid', '2', '-infinity', 1, NULL, NULL, NULL),
			(gen_random_uuid(), 'order', 'no name', 'OrderPaid', '3', NULL, 1, '{NULL,a}', '{"\\x31","\\x32"}', NULL),
			(gen_random_uuid(), 'order', 'two dimensions', 'OrderPaid', '4', NULL, 1, '{{a,b},{c,d}}', '{{"\\x31","\\x32"},{"\\x33",NULL}}', '--'),
			(gen_random_uuid(), 'order', 'nothing in it', 'OrderPaid', '5', NULL, 1, '{}', '{}', ''),
			(gen_random_uuid(), 'order', 'no values', 'OrderPaid', '6', NULL, 1, '{a,b}', NULL, 'SSSS'),
			(gen_random_uuid(), '', '', '', NULL, NULL, NULL, NULL, NULL, NULL)`)
	b.write(t, order("ours", 1))
	p := &recorder{ordered: true}
	relay := b.relay(t, p, outbox.RelayConfig{})

	b.awaitPublished(t, 8)
	relay.stop()

	got := map[string]*handler.Message{}
	for _, m := range p.messages() {
		got[string(m.Key)] = m
	}
	require.Len(t, got, 8)
	for _, key := range []string{"for ever", "since ever"} {
		require.WithinDuration(t, time.Now(), got[key].OccurredAt, deadline, "when it was written stands for a time that is none")
	}
	require.Equal(t, handler.Headers{{Name: "", Value: []byte("1")}, {Name: "a", Value: []byte("2")}}, got["no name"].Headers)
	require.Equal(t, handler.Headers{
		{Name: "a", Value: []byte("1")}, {Name: "b", Value: []byte("2")}, {Name: "c", Value: []byte("3")}, {Name: "d"},
	}, got["two dimensions"].Headers)
	require.Empty(t, got["nothing in it"].Headers)
	require.Equal(t, handler.Headers{{Name: "a", Tag: 'S'}, {Name: "b", Tag: 'S'}}, got["no values"].Headers)
	require.Equal(t, "1", string(got["for ever"].Payload))
	require.Nil(t, got[""].Payload)
	require.NotEmpty(t, got["ours"].ID)

	store := outbox.NewStore(b.Schema)
	for _, m := range got {
		record, err := store.Load(t.Context(), b.Pool, m.ID)
		require.NoError(t, err)
		require.Equal(t, m.Headers, record.Headers)
	}
	deleted, err := store.Purge(t.Context(), b.Pool, 0, outbox.PurgeConfig{Archive: outbox.DirectoryArchive(t.TempDir())})
	require.NoError(t, err)
	require.EqualValues(t, 8, deleted)
}

// Somebody parks an event: it waits for ever, and so does what follows of its
// aggregate. All others go on, and the figures say so.
func TestRelay_ParkedByHand(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.write(t, order("parked", 1))
	b.exec(t, `UPDATE semel.outbox SET next_attempt_at = 'infinity', created_at = '-infinity'`)
	b.write(t, order("parked", 2), order("free", 1))
	p := &recorder{ordered: true}
	b.relay(t, p, outbox.RelayConfig{})

	b.awaitPublished(t, 1)

	require.Equal(t, "free", string(p.messages()[0].Key))
	status, err := outbox.NewStore(b.Schema).Status(t.Context(), b.Pool)
	require.NoError(t, err)
	require.EqualValues(t, 1, status.Total().Waiting)
	records, err := outbox.NewStore(b.Schema).List(t.Context(), b.Pool, outbox.Filter{State: outbox.StateWaiting})
	require.NoError(t, err)
	require.Len(t, records, 1)
	b.exec(t, `UPDATE semel.outbox SET next_attempt_at = '-infinity' WHERE aggregateid = 'parked' AND version = 1`)
	b.awaitPublished(t, 3)
}
