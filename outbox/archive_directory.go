package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"time"
)

// DirectoryArchive is a folder as an [ArchiveStore]: outbox.DirectoryArchive("/archive").
// The folder must be there: an archive whose disk is not mounted must not begin
// anew elsewhere. So name a folder on that disk, not the one where it is mounted.
// Folders within are made as names need them; no name and no link leads out of it. Its
// file system must have hard links.
//
// Files are read-only, and nothing else here guards them: that an object is kept
// until its retain-until, which the manifest of an archived batch says, is up to
// who looks after the disk.
type DirectoryArchive string

const (
	fileMode   = 0o440
	folderMode = 0o750
)

// Create writes a file of another name, makes it durable, and gives it its own
// name, which fails if there is one already.
func (d DirectoryArchive) Create(_ context.Context, name string, data []byte, _ time.Time) (err error) {
	defer d.explain(&err, "write", name)
	if err := CheckObjectName(name); err != nil {
		return err
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	there, err := sameFile(root, name, data)
	switch {
	case err != nil:
		return err
	case there: // whoever wrote it may have died before the rest
		return settleFile(root, name)
	}
	folder := path.Dir(name)
	if err := root.MkdirAll(folder, folderMode); err != nil {
		return err
	}
	draft := path.Join(folder, draftName(name, data))
	if err := writeDraft(root, draft, data); err != nil {
		return errors.Join(err, removeDraft(root, draft)) // a full disk needs the room
	}
	err = root.Link(draft, name)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) { // somebody else writes it too, and was faster
		if there, err = sameFile(root, name, data); err == nil && !there {
			err = errors.New("somebody else began with it and gave up: try again")
		}
	}
	if err := errors.Join(err, removeDraft(root, draft)); err != nil {
		return err
	}
	return settleFile(root, name)
}

// Read returns the contents of a file.
func (d DirectoryArchive) Read(_ context.Context, name string) (data []byte, err error) {
	defer d.explain(&err, "read", name)
	if err := CheckObjectName(name); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	data, err = root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w (%w)", ErrNotArchived, err)
	}
	return data, errors.Join(err, root.Close())
}

func (d DirectoryArchive) explain(err *error, doing, name string) {
	if *err != nil {
		*err = fmt.Errorf("%s object %q of the archive in folder %q: %w", doing, name, string(d), *err)
	}
}

// sameFile reports whether the file is there, with these bytes. Others are an error.
func sameFile(root *os.Root, name string, data []byte) (there bool, err error) {
	old, err := root.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !bytes.Equal(old, data):
		return false, ErrArchiveConflict
	}
	return true, nil
}

// draftName is the name under which a file is written. It is made of its contents,
// so that whoever writes there writes the same, over what one that died has left.
func draftName(name string, data []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, name+"\x00")
	h.Write(data)
	return ".draft-" + hex.EncodeToString(h.Sum(nil))
}

func writeDraft(root *os.Root, draft string, data []byte) (err error) {
	file, err := root.OpenFile(draft, os.O_CREATE|os.O_WRONLY, fileMode|0o200)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Sync()
}

func removeDraft(root *os.Root, draft string) error {
	if err := root.Remove(draft); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// settleFile makes the file read-only and its name durable, up to the folder of
// the archive.
func settleFile(root *os.Root, name string) error {
	info, err := root.Stat(name)
	if err == nil && info.Mode().Perm()&0o222 != 0 {
		err = root.Chmod(name, fileMode)
	}
	if err != nil {
		return err
	}
	for folder := path.Dir(name); ; folder = path.Dir(folder) {
		if err := syncFolder(root, folder); err != nil {
			return err
		}
		if folder == "." {
			return nil
		}
	}
}

func syncFolder(root *os.Root, folder string) error {
	if runtime.GOOS == "windows" { // has no such thing
		return nil
	}
	opened, err := root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
