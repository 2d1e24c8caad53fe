package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/programtest"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// archiveBundle is an archive consumer, and an event for it.
type archiveBundle struct {
	programtest.Schema
	archive
	folder string
	msg    *handler.Message
	object string // where the copy goes
}

func setupArchive(t *testing.T) *archiveBundle {
	t.Helper()
	b := &archiveBundle{folder: t.TempDir()}
	left := t.TempDir()
	b.archive = archive{claims: claims{store: outbox.DirectoryArchive(left), base: fileURL(left)}, store: outbox.DirectoryArchive(b.folder)}
	check, err := b.claims.leave(t.Context(), []byte(invoic))
	require.NoError(t, err)
	payload, err := json.Marshal(received{UNBRef: "778", Sender: "s", Recipient: "r", Raw: check})
	require.NoError(t, err)
	b.msg = &handler.Message{
		ID: "0197a0b0-0000-7000-8000-000000000001", Type: receivedEvent, CorrelationID: "ACME 1@acme.example", Payload: payload,
		OccurredAt: time.Date(2028, 2, 29, 23, 30, 0, 0, time.FixedZone("", -3600)),
	}
	b.object = filepath.Join(b.folder, "2028/03/01", b.msg.ID+".edi")
	return b
}

// ctx is what the engine gives to Prepare.
func (b *archiveBundle) ctx(t *testing.T) context.Context {
	t.Helper()
	return handler.WithCause(t.Context(), &handler.Cause{Consumer: archiving, Message: b.msg})
}

func TestArchive(t *testing.T) {
	t.Parallel()
	b := setupArchive(t)

	require.NoError(t, b.copy(b.ctx(t), b.msg))
	require.NoError(t, b.copy(b.ctx(t), b.msg), "whoever repeats it after a crash writes the same")

	kept, err := os.ReadFile(b.object)
	require.NoError(t, err)
	require.Equal(t, invoic, string(kept))
	text, err := os.ReadFile(b.object + ".manifest.json")
	require.NoError(t, err)
	require.JSONEq(t, `{
		"interchange": "ACME 1@acme.example", "event": "0197a0b0-0000-7000-8000-000000000001",
		"unbRef": "778", "sender": "s", "recipient": "r",
		"receivedAt": "2028-03-01T00:30:00Z", "retainUntil": "2038-03-01T00:30:00Z",
		"object": "2028/03/01/0197a0b0-0000-7000-8000-000000000001.edi", "bytes": 488,
		"sha256": "`+hashOf([]byte(invoic))+`"}`, string(text))
	require.Len(t, invoic, 488)

	info, err := os.Stat(b.object)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o222, "nobody writes there again")
}

// What stands there with other bytes stays, and the message does not pass for
// archived.
func TestArchive_Conflict(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", ".manifest.json"} {
		b := setupArchive(t)
		require.NoError(t, os.MkdirAll(filepath.Dir(b.object), 0o700))
		require.NoError(t, os.WriteFile(b.object+suffix, []byte("other"), 0o600))

		err := b.copy(b.ctx(t), b.msg)

		require.ErrorIs(t, err, outbox.ErrArchiveConflict)
		kept, err := os.ReadFile(b.object + suffix)
		require.NoError(t, err)
		require.Equal(t, "other", string(kept))
	}
}

// One flipped byte is found.
func TestVerify(t *testing.T) {
	t.Parallel()
	b := setupArchive(t)
	require.NoError(t, b.copy(b.ctx(t), b.msg))
	object, err := filepath.Rel(b.folder, b.object)
	require.NoError(t, err)
	require.NoError(t, verify(t.Context(), b.store, object, hashOf([]byte(invoic))))
	require.NoError(t, os.Chmod(b.object, 0o600))
	require.NoError(t, os.WriteFile(b.object, []byte("V"+invoic[1:]), 0o600))

	err = verify(t.Context(), b.store, object, hashOf([]byte(invoic)))

	require.EqualError(t, err, `verify archived object "2028/03/01/0197a0b0-0000-7000-8000-000000000001.edi": it is not what was written`)
}

func TestArchive_BadEvent(t *testing.T) {
	t.Parallel()
	b := setupArchive(t)
	b.msg.Payload = []byte(`{"raw":`)

	require.True(t, handler.IsPermanent(b.copy(b.ctx(t), b.msg)))

	b.msg.Payload = []byte(`{"raw":"file:///elsewhere/1"}`)
	require.ErrorContains(t, b.copy(b.ctx(t), b.msg), "it is not of the store")
}
