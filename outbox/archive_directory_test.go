package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
)

// files are all names in a folder, drafts too.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}))
	return names
}

func TestDirectoryArchive(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	archive := outbox.DirectoryArchive(dir)
	const name = "2026/11/30/one.gz"
	_, err := archive.Read(t.Context(), name)
	require.ErrorIs(t, err, outbox.ErrNotArchived)

	require.NoError(t, archive.Create(t.Context(), name, []byte("one"), time.Time{}))
	require.NoError(t, archive.Create(t.Context(), "two", nil, time.Time{}))

	data, err := archive.Read(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
	require.Equal(t, []string{name, "two"}, files(t, dir))
	info, err := os.Stat(filepath.Join(dir, name))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o440), info.Mode().Perm())
	require.NoError(t, archive.Create(t.Context(), name, []byte("one"), time.Time{}), "a repetition")
	require.ErrorIs(t, archive.Create(t.Context(), name, []byte("One"), time.Time{}), outbox.ErrArchiveConflict)
	data, err = archive.Read(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, "one", string(data), "as it was")
}

// What a process that died has left is gone over, and nothing of it stays.
func TestDirectoryArchive_AfterADeath(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	archive := outbox.DirectoryArchive(dir)
	data := bytes.Repeat([]byte("0123456789"), 1000)
	half := filepath.Join(dir, outbox.DraftName("one", data))
	require.NoError(t, os.WriteFile(half, data[:5000], 0o600))

	require.NoError(t, archive.Create(t.Context(), "one", data, time.Time{}))

	got, err := archive.Read(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, data, got)
	require.Equal(t, []string{"one"}, files(t, dir))

	// It died between the two names.
	require.NoError(t, os.Link(filepath.Join(dir, "one"), half))
	require.NoError(t, os.Chmod(filepath.Join(dir, "one"), 0o640)) //nolint:gosec // as it was then
	require.NoError(t, archive.Create(t.Context(), "one", data, time.Time{}))
	info, err := os.Stat(filepath.Join(dir, "one"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o440), info.Mode().Perm())
}

func TestDirectoryArchive_ManyAtOnce(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	archive := outbox.DirectoryArchive(dir)
	var writing sync.WaitGroup
	wins := make([]bool, 32)
	for i := range wins {
		writing.Go(func() {
			err := archive.Create(context.Background(), "a/one", bytes.Repeat([]byte{byte('0' + i%2)}, 1<<20), time.Time{})
			wins[i] = err == nil
			if err != nil && !errors.Is(err, outbox.ErrArchiveConflict) && !strings.Contains(err.Error(), "try again") {
				t.Error(err)
			}
		})
	}
	writing.Wait()

	data, err := archive.Read(t.Context(), "a/one")
	require.NoError(t, err)
	winner := int(data[0] - '0')
	require.Equal(t, bytes.Repeat(data[:1], 1<<20), data, "of one of them")
	for i, won := range wins {
		require.False(t, won && i%2 != winner, "writer %d believes that it won", i)
	}
	require.Equal(t, []string{"a/one"}, files(t, dir))
}

// No name leads out of the folder, and no link in it does.
func TestDirectoryArchive_StaysInside(t *testing.T) {
	t.Parallel()

	dir, outside := t.TempDir(), t.TempDir()
	archive := outbox.DirectoryArchive(dir)
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	for _, name := range []string{
		"", ".", "..", "../secret", "/etc/passwd", "a/../../secret", "a//b", "a/", `..\secret`, `a\b`, "a:b", ".hidden", "a/.draft-1",
		"a\x00b", "a b", "ä", strings.Repeat("a", 256), strings.Repeat("a/", 450) + "a",
	} {
		_, err := archive.Read(t.Context(), name)
		require.ErrorIs(t, err, outbox.ErrBadObjectName, "%q", name)
		require.ErrorIs(t, archive.Create(t.Context(), name, nil, time.Time{}), outbox.ErrBadObjectName, "%q", name)
	}

	_, err := archive.Read(t.Context(), "link/secret")
	require.Error(t, err)
	require.NotErrorIs(t, err, outbox.ErrNotArchived)
	require.Error(t, archive.Create(t.Context(), "link/new", nil, time.Time{}))
	require.Equal(t, []string{"secret"}, files(t, outside))
}

// A disk that is not mounted is no empty archive.
func TestDirectoryArchive_Away(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "archive")
	archive := outbox.DirectoryArchive(dir)

	err := archive.Create(t.Context(), "one", nil, time.Time{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, fmt.Sprintf("%q", dir))
	_, err = archive.Read(t.Context(), "one")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, outbox.ErrNotArchived)
	require.NoDirExists(t, dir)
}
