package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
)

// archiveOf is the files of an archive, without their manifests.
func archiveOf(t *testing.T, dir string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".jsonl.gz") {
			files = append(files, path)
		}
		return err
	}))
	return files
}

func TestOutboxRestore(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	events(t, db)
	before := works(t, db, "outbox", "list", "-json")
	dir := t.TempDir()
	const will = "archives events that were published or discarded more than 1h0m0s ago, reads them back, and deletes them here\n"

	r := semel(t, db.URL, "outbox", "purge", "-older", "1h", "-archive", dir, "-schema", db.Schema)
	require.Equal(t, 1, r.code)
	require.Equal(t, will, r.stdout)
	require.Empty(t, archiveOf(t, dir))
	require.Equal(t, will+"3 deleted\n", works(t, db, "outbox", "purge", "-older", "1h", "-archive", dir, "-retain", "30d", "-batch", "2", "-yes"))
	require.JSONEq(t, `{"deleted": 0}`, works(t, db, "outbox", "purge", "-older", "1h", "-archive", dir, "-yes", "-json"))
	require.NotEqual(t, before, works(t, db, "outbox", "list", "-json"))
	files := archiveOf(t, dir)
	require.Len(t, files, 2)

	listed := semel(t, "", append([]string{"outbox", "restore", "-list"}, files...)...)
	require.Zero(t, listed.code, listed.stderr)
	require.Contains(t, listed.stdout, eventID(4)+"  published  order 4")
	require.NotContains(t, listed.stdout, eventID(1))
	require.NotContains(t, listed.stdout, "\x1b")

	text := works(t, db, "outbox", "restore", files[0])
	require.Contains(t, text, files[0]+": ")
	require.Contains(t, text, " restored, 0 were there\n")
	require.NotContains(t, text, files[1])
	again := works(t, db, append([]string{"outbox", "restore", "-json"}, files...)...)
	require.Contains(t, again, `"restored": 0`)
	require.Contains(t, again, `"retain_until": "`+time.Now().Add(30*24*time.Hour).UTC().Format("2006-"))
	require.JSONEq(t, before, works(t, db, "outbox", "list", "-json"))
}

// One byte is not as it was: exit 1, file and line are named, and nothing is
// restored, of other files neither.
func TestOutboxRestore_OneFlippedByte(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	events(t, db)
	dir := t.TempDir()
	works(t, db, "outbox", "purge", "-older", "1h", "-archive", dir, "-batch", "2", "-yes")
	files := archiveOf(t, dir)
	before := works(t, db, "outbox", "list", "-json")
	for i, name := range []string{files[1], strings.TrimSuffix(files[1], ".jsonl.gz") + ".manifest.json"} {
		right, err := os.ReadFile(name) //nolint:gosec // our own folder
		require.NoError(t, err)
		wrong := append([]byte(nil), right...)
		wrong[len(wrong)/2] ^= 4
		require.NoError(t, os.Remove(name))
		require.NoError(t, os.WriteFile(name, wrong, 0o600))

		r := semel(t, db.URL, append([]string{"outbox", "restore", "-schema", db.Schema}, files...)...)

		require.Equal(t, 1, r.code, strconv.Itoa(i))
		require.Contains(t, r.stderr, files[1])
		require.Regexp(t, filepath.Base(name)+` of the archive, line [12]: `, r.stderr)
		require.Empty(t, r.stdout)
		require.Equal(t, before, works(t, db, "outbox", "list", "-json"))
		require.NoError(t, os.WriteFile(name, right, 0o600))
	}
}
