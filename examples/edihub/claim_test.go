package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

func TestClaims(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := claims{store: outbox.DirectoryArchive(dir), base: fileURL(dir)}

	check, err := c.leave(t.Context(), []byte(invoic))
	require.NoError(t, err)
	again, err := c.leave(t.Context(), []byte(invoic))
	require.NoError(t, err)
	require.Equal(t, check, again, "the same bytes have the same check")
	require.Contains(t, check, "file:///")
	raw, err := c.redeem(t.Context(), check)
	require.NoError(t, err)
	require.Equal(t, invoic, string(raw))

	_, err = c.redeem(t.Context(), "file:///elsewhere/ab/cd.edi")
	require.ErrorContains(t, err, "it is not of the store")
	require.True(t, handler.IsPermanent(err))
	_, err = c.redeem(t.Context(), c.base+"/../../etc/passwd")
	require.ErrorIs(t, err, outbox.ErrBadObjectName)
	_, err = c.redeem(t.Context(), c.base+"/"+objectName([]byte("nobody left this")))
	require.ErrorIs(t, err, outbox.ErrNotArchived)

	path := filepath.Join(dir, objectName([]byte(invoic)))
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, []byte(una), 0o600))
	_, err = c.redeem(t.Context(), check)
	require.ErrorIs(t, err, errAltered)
	require.True(t, handler.IsPermanent(err))
	_, err = c.leave(t.Context(), []byte(invoic))
	require.ErrorIs(t, err, outbox.ErrArchiveConflict)
}
