package outbox_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/codectest"
	"github.com/semel-go/semel/outbox"
)

// odd writes events with all that a row can have, as applications write them and as
// nobody should, and makes them old.
func (b *testBundle) odd(t *testing.T) {
	t.Helper()
	b.write(t,
		outbox.Event{
			AggregateType: "a", AggregateID: "1", Type: "Full", Version: 7, Payload: []byte("{\"a\": \"<&>\u2028ü\"}\r\n"), ContentType: "application/json",
			OccurredAt: time.Date(0, 1, 1, 0, 0, 0, 1000, time.UTC), CorrelationID: "c", CausationID: "d", Source: "shipping",
			Headers: handler.Headers{{Name: "x", Value: []byte("text"), Tag: 'S'}, {Name: "y"}, {Name: "x", Value: []byte{}}, {Name: "z", Value: []byte{0xff, 0}}},
		},
		outbox.Event{AggregateType: "a", AggregateID: "2", Type: "Tombstone"},
		outbox.Event{AggregateType: "a", AggregateID: "3", Type: "Empty", Payload: []byte{}},
		outbox.Event{AggregateType: "a", AggregateID: "4", Type: "Binary", Payload: []byte{0, 0xff, 0xfe, '\n'}},
		outbox.Event{AggregateType: "a", AggregateID: "5", Type: "NUL", Payload: []byte("a\x00b\n\"")},
	)
	encoded := outbox.NewWriter(b.Schema).WithCodec(codectest.New("k1"))
	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		return encoded.Write(t.Context(), tx, outbox.Event{AggregateType: "a", AggregateID: "6", Type: "Encoded", Payload: []byte("card 4242"), Headers: handler.Headers{{Name: "x", Value: []byte("1")}}})
	}))
	b.exec(t, `UPDATE semel.outbox SET published_at = clock_timestamp() - interval '30 days', lease_epoch = 12, lease_attempts = 2, attempts = 3, last_error = 'refused "it"'`)
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, created_at, published_at, occurred_at, next_attempt_at, quarantined_at, first_failed_at,
			content_type, source, header_names, header_values, header_tags)
		VALUES
			(gen_random_uuid(), 'hand', '1', 'Times', '-infinity', '0044-03-15 BC', '20000-01-01Z', 'infinity', '9999-12-31 23:59:59.999999Z', '0001-01-01Z', NULL, NULL, NULL, NULL, NULL),
			(gen_random_uuid(), 'hand', '2', '', now(), '-infinity', now(), now(), now(), now(), '', '', '{}', '{}', ''),
			(gen_random_uuid(), 'hand', '3', 'Arrays', now(), '2020-01-01', NULL, NULL, NULL, NULL, NULL, NULL, '{a,NULL,""}', '{NULL,"\\x"}', '--S*')`)
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, quarantined_at, discarded_at)
		VALUES (gen_random_uuid(), 'hand', '4', 'Discarded', '2020-01-01', '2020-01-02')`)
}

// Whatever a row has comes back from the archive as it was.
func TestArchive_EveryColumn(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.odd(t)
	old := b.stored(t, oldRows)
	require.Len(t, old, 10)
	dir := t.TempDir()
	_, err := b.purgeTo(t, outbox.DirectoryArchive(dir), 0)
	require.NoError(t, err)
	require.Empty(t, b.stored(t, "true"))

	objects, ids := archived(t, dir)
	require.Len(t, ids, len(old))
	b.restore(t, objects...)

	require.Equal(t, old, b.stored(t, "true"))
	records := map[string]outbox.Record{}
	for _, r := range objects[0].Records() {
		records[r.Type] = r
		if r.AggregateType != "a" { // times that nobody can be shown
			continue
		}
		stored, err := outbox.NewStore(b.Schema).Load(t.Context(), b.Pool, r.ID)
		require.NoError(t, err)
		require.Equal(t, *stored, r)
	}
	require.True(t, records["Encoded"].Encoded)
	require.NotContains(t, string(records["Encoded"].Payload), "4242")
	require.Equal(t, []byte{0, 0xff, 0xfe, '\n'}, records["Binary"].Payload)
}

// Lines are for people too: columns by their names, text as text. Every column is
// there, and one that comes later must not be forgotten.
func TestArchive_Lines(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.odd(t)
	rows, err := b.Pool.Query(t.Context(), `SELECT column_name::text FROM information_schema.columns WHERE table_schema = $1 AND table_name = 'outbox' AND is_generated = 'NEVER'`, b.Schema)
	require.NoError(t, err)
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	dir := t.TempDir()
	_, err = b.purgeTo(t, outbox.DirectoryArchive(dir), 0)
	require.NoError(t, err)

	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(query[string](t, b, `SELECT object FROM semel.archive_batches`))))
	require.NoError(t, err)
	text := unzip(t, data)

	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &object))
		for name := range object {
			seen[name] = true
		}
	}
	for _, column := range columns {
		require.True(t, seen[column], column)
	}
	require.Len(t, seen, len(columns)+1, "and the checksum")
	require.Contains(t, text, `"type":"Full","version":7,"created_at":"2`)
	require.Contains(t, text, `"payload":{"text":"{\"a\": \"<&>\u2028ü\"}\r\n"}`)
	require.Contains(t, text, `"payload":{"base64":"AP/+Cg=="}`)
	require.Contains(t, text, `"occurred_at":"0000-01-01T00:00:00.000001Z"`)
	require.Contains(t, text, `"next_attempt_at":"infinity"`)
	require.Contains(t, text, `"header_names":["a",null,""],"header_values":[null,{"text":""}],"header_tags":"--S*"`)
}

// What a newer version has added would be lost: nothing is archived, and so nothing
// deleted, by one that does not know it. What the database computes is no loss.
func TestPurge_ArchivesNoUnknownColumns(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.fill(t, 5)
	b.exec(t, `ALTER TABLE semel.outbox ADD COLUMN later text, ADD COLUMN gone text, ADD COLUMN size int GENERATED ALWAYS AS (octet_length(payload)) STORED`)
	b.exec(t, `ALTER TABLE semel.outbox DROP COLUMN gone`)
	dir := t.TempDir()

	_, err := b.purgeTo(t, outbox.DirectoryArchive(dir), 0)

	require.ErrorContains(t, err, `columns that this version does not archive, ["later"]: archive with a newer one`)
	require.Equal(t, 5, b.counts(t)["published"])
	b.exec(t, `ALTER TABLE semel.outbox DROP COLUMN later`)
	deleted, err := b.purgeTo(t, outbox.DirectoryArchive(dir), 0)
	require.NoError(t, err)
	require.EqualValues(t, 10, deleted)
}

// One byte that is not as it was, wherever it is, is found, and said where.
func TestReadArchived_OneFlippedByte(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.fill(t, 4)
	b.exec(t, `UPDATE semel.outbox SET payload = decode(md5(id::text) || repeat('00', 20), 'hex')`)
	dir := t.TempDir()
	_, err := b.purgeTo(t, outbox.DirectoryArchive(dir), 0)
	require.NoError(t, err)
	archive := outbox.DirectoryArchive(dir)
	object := query[string](t, b, `SELECT object FROM semel.archive_batches`)
	for _, name := range []string{object, outbox.ManifestName(object)} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		right, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(path, 0o600))
		for i := range right {
			wrong := bytes.Clone(right)
			wrong[i] ^= []byte{0x01, 0x20, 0xff}[i%3]
			require.NoError(t, os.WriteFile(path, wrong, 0o600))

			_, err := outbox.ReadArchived(t.Context(), archive, object)

			var damage *outbox.ArchiveError
			require.ErrorAs(t, err, &damage, "byte %d of %s", i, name)
			require.Equal(t, name, damage.Object)
			require.Positive(t, damage.Line, "byte %d of %s: %v", i, name, err)
			require.LessOrEqual(t, damage.Line, 9)
		}
		for _, n := range []int{0, 1, len(right) / 2, len(right) - 1} {
			require.NoError(t, os.WriteFile(path, right[:n], 0o600))
			_, err := outbox.ReadArchived(t.Context(), archive, object)
			var damage *outbox.ArchiveError
			require.ErrorAs(t, err, &damage, "the first %d bytes of %s", n, name)
			require.Equal(t, name, damage.Object)
		}
		require.NoError(t, os.WriteFile(path, right, 0o600))
	}
	_, err = outbox.ReadArchived(t.Context(), archive, object)
	require.NoError(t, err)
	_, err = outbox.ReadArchived(t.Context(), archive, "other.jsonl.gz")
	require.ErrorIs(t, err, outbox.ErrNotArchived)
	require.NoError(t, os.Remove(filepath.Join(dir, filepath.FromSlash(outbox.ManifestName(object)))))
	_, err = outbox.ReadArchived(t.Context(), archive, object)
	require.ErrorIs(t, err, outbox.ErrNotArchived)
	require.ErrorContains(t, err, "manifest")
}

// The lines that were damaged are named, not only that there are some.
func TestReadArchived_NamesTheLine(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.fill(t, 20)
	dir := t.TempDir()
	_, err := b.purgeTo(t, outbox.DirectoryArchive(dir), 0)
	require.NoError(t, err)
	object := query[string](t, b, `SELECT object FROM semel.archive_batches`)
	path := filepath.Join(dir, filepath.FromSlash(object))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.SplitAfter(unzip(t, data), "\n")
	lines[16] = strings.Replace(lines[16], "OrderPaid", "OrderPayd", 1)
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, zip(t, strings.Join(lines, "")), 0o600))

	_, err = outbox.ReadArchived(t.Context(), outbox.DirectoryArchive(dir), object)

	require.ErrorContains(t, err, object+" of the archive, line 17: it is not as it was written: its checksum does not fit")
}

// What the outbox has otherwise is not overwritten, and then nothing is restored.
func TestStore_RestoreConflict(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.fill(t, 10)
	dir := t.TempDir()
	_, err := b.purgeTo(t, outbox.DirectoryArchive(dir), 0)
	require.NoError(t, err)
	objects, _ := archived(t, dir)
	before := b.stored(t, "true")
	for _, otherwise := range []string{
		`UPDATE semel.outbox SET type = 'OrderPayd' WHERE id = $1`,
		`UPDATE semel.outbox SET published_at = NULL, discarded_at = NULL WHERE id = $1`,
	} {
		b.restore(t, objects...)
		id := objects[0].Records()[3].ID
		b.exec(t, `DELETE FROM semel.outbox WHERE (published_at IS NOT NULL OR discarded_at IS NOT NULL) AND id <> $1`, id)
		b.exec(t, otherwise, id)

		err = pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			_, _, err := outbox.NewStore(b.Schema).Restore(t.Context(), tx, objects[0])
			return err
		})

		require.ErrorIs(t, err, outbox.ErrRestoreConflict)
		require.ErrorContains(t, err, id)
		require.ErrorContains(t, err, objects[0].Manifest.Object)
		require.Len(t, b.stored(t, "true"), len(before)+1, "nothing is restored")
		b.exec(t, `DELETE FROM semel.outbox WHERE id = $1`, id)
	}
	require.Equal(t, before, b.stored(t, "true"))
}

// A relay publishes nothing that was restored.
func TestStore_RestoredIsNotPublished(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, published_at)
		SELECT gen_random_uuid(), 'order', n, 'OrderPaid', clock_timestamp() - interval '30 days' FROM generate_series(1, 50) AS n`)
	dir := t.TempDir()
	_, err := b.purgeTo(t, outbox.DirectoryArchive(dir), 0)
	require.NoError(t, err)
	objects, _ := archived(t, dir)
	p := &recorder{}
	b.relay(t, p, quick())
	b.write(t, order("first", 1))
	b.awaitPublished(t, 1)

	b.restore(t, objects...)
	b.write(t, order("last", 1))

	b.awaitStates(t, "last", "published")
	require.Len(t, p.messages(), 2)
	require.Equal(t, 52, b.counts(t)["published"])
}

// A line must be of a row that was published, and one of a newer program is not
// read without what it knows more.
func TestReadLine(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, object, want string }{
		{name: "Pending", object: `{"seq":1,"id":"0191e2a0-0000-7abc-8000-0123456789ab"}`, want: "still to be published"},
		{name: "Newer", object: `{"seq":1,"published_at":"2026-11-30T10:00:00.000000Z","colour":"red"}`, want: `unknown field "colour"`},
		{name: "Blob", object: `{"payload":{"text":"a","base64":"YQ=="}}`, want: "either text or base64"},
		{name: "Time", object: `{"published_at":"yesterday"}`, want: "yesterday"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			require.ErrorContains(t, outbox.ReadLine(outbox.Sealed([]byte(tt.object))), tt.want)
			require.ErrorContains(t, outbox.ReadLine([]byte(tt.object)), "checksum")
		})
	}
	require.ErrorContains(t, outbox.ReadLine(nil), "cut short")
	require.NoError(t, outbox.ReadLine(outbox.Sealed([]byte(`{"seq":1,"published_at":"2026-11-30T10:00:00.000000Z"}`))))
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte(`{"seq":1,"id":"0191e2a0-0000-7abc-8000-0123456789ab","published_at":"2026-11-30T10:00:00.000000Z","payload":{"text":"a"}}`))
	f.Add([]byte(`{"published_at":253402300800000000,"header_values":[null,{"base64":"AA=="}]}`))
	f.Fuzz(func(_ *testing.T, object []byte) {
		_ = outbox.ReadLine(object)
		if len(object) > 0 {
			_ = outbox.ReadLine(outbox.Sealed(object))
		}
	})
}
