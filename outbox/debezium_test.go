package outbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// inDatabase is the bundle in a database of its own: a slot decodes all that
// happens in its database, and other tests drop and rewrite tables in theirs.
func (b *testBundle) inDatabase(t *testing.T) *testBundle {
	t.Helper()
	b.exec(t, `CREATE DATABASE `+b.Schema+` ENCODING 'UTF8' TEMPLATE template0`)
	t.Cleanup(func() {
		_, err := b.Pool.Exec(context.WithoutCancel(t.Context()), `DROP DATABASE `+b.Schema+` WITH (FORCE)`)
		require.NoError(t, err)
	})
	cfg := b.Pool.Config()
	cfg.ConnConfig.Database = b.Schema
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = schema.Up(t.Context(), pool, b.Schema, 0)
	require.NoError(t, err)
	return &testBundle{DB: &pgtest.DB{Schema: b.Schema, Pool: pool}, writer: b.writer}
}

// Debezium's event router reads the table by its default columns, from a
// publication of inserts only: it takes an UPDATE, which is how a relay marks,
// for a mistake. This reads the log as its connector does, through pgoutput.
func TestDebezium_ReadsTheTable(t *testing.T) {
	t.Parallel()

	b := setup(t)
	if query[string](t, b, `SHOW wal_level`) != "logical" {
		services.Missing(t, "the server has wal_level below logical: nothing can be decoded")
	}
	b = b.inDatabase(t)
	name := "semel_test_" + strings.ToLower(rand.Text()[:20])
	b.exec(t, `CREATE PUBLICATION `+name+` FOR TABLE semel.outbox WITH (publish = 'insert')`)
	require.Eventually(t, func() bool { // 16.9 and 17.5 ask for gigabytes where others change tables meanwhile
		_, err := b.Pool.Exec(t.Context(), `SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, name)
		var refused *pgconn.PgError
		require.False(t, err != nil && (!errors.As(err, &refused) || refused.Code != "XX000"), "%v", err)
		return err == nil
	}, deadline, tick)
	t.Cleanup(func() {
		_, err := b.Pool.Exec(context.WithoutCancel(t.Context()), `SELECT pg_drop_replication_slot($1)`, name)
		require.NoError(t, err)
		_, err = b.Pool.Exec(context.WithoutCancel(t.Context()), `DROP PUBLICATION `+name)
		require.NoError(t, err)
	})

	b.write(t, outbox.Event{
		ID: "0191e2a0-0000-7abc-8000-0123456789ab", AggregateType: "Order", AggregateID: "42", Type: "OrderPaid",
		Payload: []byte(`{"b": 1, "a": 2}`), Headers: handler.Headers{{Name: "h", Value: []byte("v")}},
	})
	rolledBack := b.begin(t)
	require.NoError(t, b.writer.Write(t.Context(), rolledBack, order("1", 1)))
	require.NoError(t, rolledBack.Rollback(t.Context()))
	b.exec(t, `UPDATE semel.outbox SET published_at = clock_timestamp()`)
	b.exec(t, `DELETE FROM semel.outbox`)

	rows, err := b.Pool.Query(t.Context(), `SELECT data FROM pg_logical_slot_get_binary_changes($1::text::name, NULL, NULL, 'proto_version', '1', 'publication_names', $1::text)`, name)
	require.NoError(t, err)
	changes, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	require.NoError(t, err)
	var inserted []map[string]string
	var columns []string
	for _, change := range changes {
		switch change[0] {
		case 'R':
			columns = relationColumns(change)
		case 'I':
			inserted = append(inserted, insertedRow(columns, change))
		case 'U', 'D', 'T':
			require.Fail(t, "the router sees more than inserts")
		}
	}

	require.Len(t, inserted, 1)
	row := inserted[0]
	require.Equal(t, "0191e2a0-0000-7abc-8000-0123456789ab", row["id"])
	require.Equal(t, "Order", row["aggregatetype"], "outbox.event.Order is its topic")
	require.Equal(t, "42", row["aggregateid"], "the record's key")
	require.Equal(t, "OrderPaid", row["type"])
	require.Equal(t, `\x`+hex.EncodeToString([]byte(`{"b": 1, "a": 2}`)), row["payload"], "byte for byte")
}

// relationColumns reads the names of a Relation message of pgoutput
// (https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html).
func relationColumns(msg []byte) (names []string) {
	r := bytes.NewBuffer(msg[1+4:])
	_, _ = r.ReadString(0) // namespace
	_, _ = r.ReadString(0) // relation
	r.Next(1)              // replica identity
	for range binary.BigEndian.Uint16(r.Next(2)) {
		r.Next(1) // flags
		name, _ := r.ReadString(0)
		names = append(names, strings.TrimSuffix(name, "\x00"))
		r.Next(4 + 4) // type, modifier
	}
	return names
}

// insertedRow reads the columns of an Insert message that are not NULL.
func insertedRow(columns []string, msg []byte) map[string]string {
	r := bytes.NewBuffer(msg[1+4+1:])
	row := make(map[string]string)
	for i := range binary.BigEndian.Uint16(r.Next(2)) {
		if kind := r.Next(1)[0]; kind == 't' {
			row[columns[i]] = string(r.Next(int(binary.BigEndian.Uint32(r.Next(4)))))
		}
	}
	return row
}
