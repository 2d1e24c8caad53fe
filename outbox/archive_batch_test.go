package outbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
)

// A row that somebody changes while it is being archived, against all advice, is
// archived as it is then, and stops nothing.
func TestPurge_ArchivesWhatChanges(t *testing.T) {
	t.Parallel()

	const change = `UPDATE semel.outbox SET payload = 'redacted' WHERE id = $1`
	t.Run("BeforeThereIsAnObject", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.fill(t, 50)
		dir := t.TempDir()
		f := &faults{DirectoryArchive: outbox.DirectoryArchive(dir)}
		b.stop(t, f, "create", ".gz")
		id := query[string](t, b, `SELECT id::text FROM semel.outbox WHERE published_at IS NOT NULL LIMIT 1`)
		b.exec(t, change, id)
		b.exec(t, `UPDATE semel.outbox SET published_at = NULL WHERE id = (SELECT id FROM semel.outbox WHERE published_at IS NOT NULL AND id <> $1 LIMIT 1)`, id)

		deleted, err := b.purgeTo(t, f, 0)

		require.NoError(t, err)
		require.EqualValues(t, 99, deleted)
		objects, ids := archived(t, dir)
		require.Len(t, objects, 1)
		require.Len(t, ids, 99)
		for _, r := range objects[0].Records() {
			require.Equal(t, r.ID == id, string(r.Payload) == "redacted")
		}
		require.Equal(t, 51, b.counts(t)["pending"])
	})
	t.Run("BehindThat", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.fill(t, 50)
		dir := t.TempDir()
		f := &faults{DirectoryArchive: outbox.DirectoryArchive(dir)}
		b.stop(t, f, "create", ".json")
		id := query[string](t, b, `SELECT id::text FROM semel.outbox WHERE published_at IS NOT NULL LIMIT 1`)
		b.exec(t, change, id)

		deleted, err := b.purgeTo(t, f, 0)

		require.NoError(t, err)
		require.EqualValues(t, 100, deleted)
		seen := map[string][]string{}
		for _, name := range files(t, dir) {
			if strings.HasSuffix(name, ".gz") {
				a, err := outbox.ReadArchived(t.Context(), f, name)
				require.NoError(t, err)
				for _, r := range a.Records() {
					seen[r.ID] = append(seen[r.ID], string(r.Payload))
				}
			}
		}
		require.Len(t, seen, 100)
		require.ElementsMatch(t, []string{"", "redacted"}, seen[id])
	})
	t.Run("WhileItIsDeleted", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.fill(t, 50)
		dir := t.TempDir()
		f := &faults{DirectoryArchive: outbox.DirectoryArchive(dir)}
		id := query[string](t, b, `SELECT id::text FROM semel.outbox WHERE published_at IS NOT NULL LIMIT 1`)
		f.set(func(doing, name string) error { // its rows were read, and are not deleted yet
			if doing == "create" && strings.HasSuffix(name, ".json") {
				b.exec(t, `UPDATE semel.outbox SET published_at = NULL WHERE id = $1`, id)
			}
			return nil
		})

		deleted, err := b.purgeTo(t, f, 0)

		require.NoError(t, err)
		require.EqualValues(t, 99, deleted)
		require.Equal(t, 51, b.counts(t)["pending"], "what is to be published again is not deleted")
	})
	t.Run("SomebodyElseDeletedIt", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.fill(t, 50)
		dir := t.TempDir()
		f := &faults{DirectoryArchive: outbox.DirectoryArchive(dir)}
		b.stop(t, f, "create", ".gz")
		_, err := outbox.NewStore(b.Schema).Purge(t.Context(), b.Pool, week, outbox.PurgeConfig{})
		require.ErrorContains(t, err, "goes to an archive", "one that was not told of the archive")
		b.exec(t, `DELETE FROM semel.outbox WHERE coalesce(published_at, discarded_at) < now() - interval '7 days'`)
		b.fill(t, 1)

		deleted, err := b.purgeTo(t, f, 0)

		require.NoError(t, err)
		require.EqualValues(t, 2, deleted)
		_, ids := archived(t, dir)
		require.Len(t, ids, 2)
	})
}

// Somebody wrote object and manifest, and died before the store had said that they
// cannot be lost any more. Whoever goes on has that said of both before anything is
// deleted.
func TestPurge_ArchiveFoundIsSettled(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.fill(t, 50)
	f := &faults{DirectoryArchive: outbox.DirectoryArchive(t.TempDir())}
	died := errors.New("died")
	b.stop(t, f, "create", ".json")
	var settled []string
	f.set(func(doing, name string) error {
		if doing == "create" {
			settled = append(settled, name[strings.LastIndex(name, "."):])
			if len(settled) == 2 {
				return died
			}
		}
		return nil
	})
	_, err := b.purgeTo(t, f, 0)
	require.ErrorIs(t, err, died)
	require.Equal(t, []string{".json", ".gz"}, settled, "the manifest is written, then both are settled")
	require.Equal(t, 50, b.counts(t)["published"], "nothing is deleted before")
}
