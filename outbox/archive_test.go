package outbox_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

const week = 7 * 24 * time.Hour

// purgeTo archives in dir what is older than a week, and deletes it.
func (b *testBundle) purgeTo(t *testing.T, archive outbox.ArchiveStore, batch int) (int64, error) {
	t.Helper()
	return outbox.NewStore(b.Schema).Purge(t.Context(), b.Pool, week, outbox.PurgeConfig{Archive: archive, Batch: batch})
}

// archived reads all objects of a folder, and requires that no event is in two.
func archived(t *testing.T, dir string) (objects []*outbox.Archived, ids map[string]string) {
	t.Helper()
	ids = map[string]string{}
	for _, name := range files(t, dir) {
		if !strings.HasSuffix(name, ".jsonl.gz") {
			continue
		}
		a, err := outbox.ReadArchived(t.Context(), outbox.DirectoryArchive(dir), name)
		require.NoError(t, err)
		objects = append(objects, a)
		for _, r := range a.Records() {
			require.Empty(t, ids[r.ID], "event %s is in two objects", r.ID)
			ids[r.ID] = name
		}
	}
	return objects, ids
}

// stored is all rows with all columns, by id.
func (b *testBundle) stored(t *testing.T, where string) map[string]string {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), schema.Qualify(`SELECT o.id::text, to_jsonb(o)::text FROM semel.outbox AS o WHERE `+where, b.Schema))
	require.NoError(t, err)
	all, id, row := map[string]string{}, "", ""
	_, err = pgx.ForEachRow(rows, []any{&id, &row}, func() error {
		all[id] = row
		return nil
	})
	require.NoError(t, err)
	return all
}

const oldRows = `coalesce(o.published_at, o.discarded_at) < clock_timestamp() - interval '7 days'`

// Case O10: a purge that archives meets pending and quarantined events among old ones. They are neither archived nor deleted; what is deleted is in the archive, each event once, and comes back from there as it was (seed documents)
func TestPurge_Archives(t *testing.T) {
	t.Parallel()

	b := setup(t)
	const each = 700
	b.fill(t, each)
	b.exec(t, `UPDATE semel.outbox SET published_at = clock_timestamp() - interval '6 days' WHERE aggregatetype = 'published' AND aggregateid::int > $1`, each-100)
	old := b.stored(t, oldRows)
	require.Len(t, old, 2*each-100)
	dir := t.TempDir()

	deleted, err := b.purgeTo(t, outbox.DirectoryArchive(dir), 500)

	require.NoError(t, err)
	require.EqualValues(t, len(old), deleted)
	require.Equal(t, map[string]int{"pending": each, "waiting": each, "quarantined": each, "published": 100}, b.counts(t))
	objects, ids := archived(t, dir)
	require.Len(t, ids, len(old))
	require.Len(t, objects, 3, "500, 500, 300")
	for id := range ids {
		require.Contains(t, old, id)
	}
	for _, a := range objects {
		m := a.Manifest
		require.InDelta(t, 10*365*24*time.Hour, m.RetainUntil.Sub(m.ArchivedAt), float64(time.Minute))
		require.InDelta(t, 30*24*time.Hour, m.ArchivedAt.Sub(m.FirstAt), float64(time.Hour))
		require.LessOrEqual(t, m.FirstSeq, m.LastSeq)
		records := a.Records()
		require.Len(t, records, m.Events)
		for i := range records[1:] {
			require.Less(t, records[i].Seq, records[i+1].Seq)
		}
	}
	require.Equal(t, 3, query[int](t, b, `SELECT count(*)::int FROM semel.archive_batches WHERE done_at IS NOT NULL AND verified_at IS NOT NULL AND event_ids IS NULL`))

	require.Equal(t, len(old), b.restore(t, objects...))
	require.Equal(t, old, b.stored(t, oldRows))
	require.Zero(t, b.restore(t, objects...), "they are there")
	require.Equal(t, old, b.stored(t, oldRows))
}

// restore restores objects in one transaction and returns how many events that were.
func (b *testBundle) restore(t *testing.T, objects ...*outbox.Archived) (restored int) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		for _, a := range objects {
			n, skipped, err := outbox.NewStore(b.Schema).Restore(t.Context(), tx, a)
			if err != nil {
				return err
			}
			require.Equal(t, a.Manifest.Events, n+skipped)
			restored += n
		}
		return nil
	}))
	return restored
}

// faults is an archive that fails where it is told.
type faults struct {
	outbox.DirectoryArchive

	mu     sync.Mutex // guards fail
	fail   func(doing, name string) error
	spoils bool // what it returns is not what was written
}

func (f *faults) set(fail func(doing, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *faults) failing(doing, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == nil {
		return nil
	}
	return f.fail(doing, name)
}

func (f *faults) Create(ctx context.Context, name string, data []byte, until time.Time) error {
	if err := f.failing("create", name); err != nil {
		return err
	}
	if f.spoils {
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
	}
	return f.DirectoryArchive.Create(ctx, name, data, until)
}

func (f *faults) Read(ctx context.Context, name string) ([]byte, error) {
	if err := f.failing("read", name); err != nil {
		return nil, err
	}
	return f.DirectoryArchive.Read(ctx, name)
}

// Case O10: the archive fails, at each call that a purge makes there: nothing is deleted, and the next purge goes on with the same events and the same object (seed documents)
func TestPurge_ArchiveFails(t *testing.T) {
	t.Parallel()

	errFull := errors.New("no space left on device")
	tests := []struct {
		name  string
		calls int // that go well
	}{{"Looks", 0}, {"WritesTheObject", 1}, {"ReadsItBack", 2}, {"LooksForTheManifest", 3}, {"WritesTheManifest", 4}, {"ReadsThatBack", 5}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.fill(t, 50)
			before, dir := b.stored(t, `true`), t.TempDir()
			archive := &faults{DirectoryArchive: outbox.DirectoryArchive(dir)}
			calls := 0
			archive.set(func(string, string) error {
				if calls++; calls > tt.calls {
					return errFull
				}
				return nil
			})

			for range 2 {
				deleted, err := b.purgeTo(t, archive, 0)
				require.ErrorIs(t, err, errFull)
				require.Zero(t, deleted)
				require.Equal(t, before, b.stored(t, `true`))
			}
			object := query[string](t, b, `SELECT object FROM semel.archive_batches`)

			archive.set(nil)
			deleted, err := b.purgeTo(t, archive, 0)
			require.NoError(t, err)
			require.EqualValues(t, 100, deleted)
			objects, ids := archived(t, dir)
			require.Len(t, ids, 100)
			require.Len(t, objects, 1)
			require.Equal(t, object, objects[0].Manifest.Object)
		})
	}
}

// An archive that keeps something else than it was given is noticed, and so is an
// object that somebody else has written there, or taken away. Nothing is deleted
// until a person has looked.
func TestPurge_ArchiveIsNotRight(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		set  func(t *testing.T, b *testBundle, f *faults) // up to an object that is not right
		want string
	}{
		{name: "Spoils", want: "line", set: func(_ *testing.T, _ *testBundle, f *faults) { f.spoils = true }},
		{name: "OtherObject", want: "the archive has this object with other bytes", set: func(t *testing.T, b *testBundle, f *faults) {
			other := setup(t)
			other.fill(t, 1)
			otherDir := t.TempDir()
			_, err := other.purgeTo(t, outbox.DirectoryArchive(otherDir), 0)
			require.NoError(t, err)
			data, err := outbox.DirectoryArchive(otherDir).Read(t.Context(), query[string](t, other, `SELECT object FROM semel.archive_batches`))
			require.NoError(t, err)
			require.NoError(t, f.DirectoryArchive.Create(t.Context(), b.stop(t, f, "create", ".gz"), data, time.Time{}))
		}},
		{name: "SomebodyIsFaster", want: "archive", set: func(t *testing.T, b *testBundle, f *faults) {
			name := b.stop(t, f, "create", ".gz")
			var once sync.Once
			f.set(func(doing, _ string) (err error) {
				if doing == "create" {
					once.Do(func() { err = f.DirectoryArchive.Create(t.Context(), name, []byte("mine"), time.Time{}) })
				}
				return err
			})
		}},
		{name: "Gone", want: "bring it back", set: func(t *testing.T, b *testBundle, f *faults) {
			b.stop(t, f, "create", ".gz")
			b.exec(t, `UPDATE semel.archive_batches SET verified_at = clock_timestamp()`)
		}},
		{name: "OtherManifest", want: "line 1", set: func(t *testing.T, b *testBundle, f *faults) {
			name := b.stop(t, f, "create", ".json")
			require.NoError(t, f.DirectoryArchive.Create(t.Context(), name, []byte(`{"events":100}`), time.Time{}))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.fill(t, 50)
			before := b.stored(t, `true`)
			f := &faults{DirectoryArchive: outbox.DirectoryArchive(t.TempDir())}
			tt.set(t, b, f)

			for range 2 {
				deleted, err := b.purgeTo(t, f, 0)
				require.ErrorContains(t, err, tt.want)
				object := query[string](t, b, `SELECT object FROM semel.archive_batches WHERE done_at IS NULL`)
				require.ErrorContains(t, err, strings.TrimSuffix(object, ".jsonl.gz"), "it names the object")
				require.Zero(t, deleted)
				require.Equal(t, before, b.stored(t, `true`))
			}
		})
	}
}

// stop lets a purge come to its first call of a kind, and returns the name there.
func (b *testBundle) stop(t *testing.T, f *faults, doing, suffix string) (name string) {
	t.Helper()
	stopped := errors.New("stopped")
	f.set(func(does, of string) error {
		if does == doing && strings.HasSuffix(of, suffix) {
			name = of
			return stopped
		}
		return nil
	})
	_, err := b.purgeTo(t, f, 0)
	require.ErrorIs(t, err, stopped)
	f.set(nil)
	return name
}

// Any number of purges at once: each event goes into one object, and none is left.
func TestPurge_ManyArchiveAtOnce(t *testing.T) {
	t.Parallel()

	b := setup(t)
	const each = 1500
	b.fill(t, each)
	dir := t.TempDir()
	var purging sync.WaitGroup
	for range 4 {
		purging.Go(func() {
			_, err := outbox.NewStore(b.Schema).Purge(context.WithoutCancel(t.Context()), b.Pool, week, outbox.PurgeConfig{Archive: outbox.DirectoryArchive(dir), Batch: 300})
			if err != nil {
				t.Error(err)
			}
		})
	}
	purging.Wait()

	_, ids := archived(t, dir)
	require.Len(t, ids, 2*each)
	require.Equal(t, map[string]int{"pending": each, "waiting": each, "quarantined": each}, b.counts(t))
	require.Zero(t, query[int](t, b, `SELECT count(*)::int FROM semel.archive_batches WHERE done_at IS NULL AND object IS NOT NULL`))
}

// An object holds no more bytes than fit in memory, however many events a batch has.
func TestPurge_ArchivesLargePayloads(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, published_at, payload)
		SELECT gen_random_uuid(), 'scan', n, 'Scanned', clock_timestamp() - interval '30 days', convert_to(repeat('x', 12 << 10), 'UTF8')
		FROM generate_series(1, 7) AS n`)
	dir := t.TempDir()

	store := outbox.NewStore(b.Schema).WithMaxObject(32 << 10)

	deleted, err := store.Purge(t.Context(), b.Pool, week, outbox.PurgeConfig{Archive: outbox.DirectoryArchive(dir)})

	require.NoError(t, err)
	require.EqualValues(t, 7, deleted)
	objects, ids := archived(t, dir)
	require.Len(t, ids, 7)
	require.Len(t, objects, 3)
}

// The part of a database role that publishes archives too; who restores must be
// allowed to write.
func TestPurge_ArchivesAsRelay(t *testing.T) {
	t.Parallel()

	b := setup(t)
	relay := b.asPart(t, schema.Relay)
	b.fill(t, 5)
	dir := t.TempDir()
	_, err := outbox.NewStore(b.Schema).Purge(t.Context(), relay, week, outbox.PurgeConfig{Archive: outbox.DirectoryArchive(dir)})
	require.NoError(t, err)
	objects, _ := archived(t, dir)
	try := func(pool *pgxpool.Pool) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, _, err := outbox.NewStore(b.Schema).Restore(t.Context(), tx, objects[0])
			return err
		})
	}
	require.ErrorContains(t, try(relay), "permission denied")

	var grants strings.Builder
	require.NoError(t, schema.Grants(&grants, b.Schema, schema.Application, relay.Config().ConnConfig.User))
	b.exec(t, grants.String())
	require.NoError(t, try(relay))
	require.Equal(t, 5, b.counts(t)["published"])
}

// unzip returns the uncompressed lines of an object.
func unzip(t *testing.T, data []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}

func zip(t *testing.T, text string) []byte {
	t.Helper()
	var data bytes.Buffer
	w := gzip.NewWriter(&data)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return data.Bytes()
}
