// Package blobstore is an archive in object storage: whatever gocloud.dev/blob has a
// driver for. It takes the place of outbox.DirectoryArchive:
//
//	bucket, err := blob.OpenBucket(ctx, "s3://archive?region=eu-central-1")
//	...
//	cfg := outbox.RelayConfig{Archive: blobstore.New(bucket, nil), Retention: 30 * 24 * time.Hour}
//
// That an object is written once is up to the service: it is asked to write only if
// there is none, in the same request (If-None-Match on S3, a generation on Google Cloud,
// an ETag on Azure). Some servers that speak S3 ignore that, at least for objects that
// are sent in parts, from 16 MB on. So whether there is one is looked up before as
// well: there, only two that write in the same moment can get past each other, and
// a purge that archives compares what it reads back.
//
// The driver for folders (fileblob) keeps it within one process only, and does not wait
// for the disk: it is for tests.
package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/semel-go/semel/outbox"
)

// Retain asks a service to let nobody delete an object before a time. As gives access
// to the driver's request, see [blob.WriterOptions.BeforeWrite]. [S3ObjectLock] is one.
type Retain func(as func(any) bool, until time.Time) error

// Store is an [outbox.ArchiveStore] in a bucket. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	retain Retain
}

// New returns a store in a bucket, which stays the caller's. With a nil retain, how long
// objects are kept is up to the bucket's own rules; each says in its metadata until
// when it should be.
func New(bucket *blob.Bucket, retain Retain) *Store { return &Store{bucket, retain} }

// Create implements [outbox.ArchiveStore].
func (s *Store) Create(ctx context.Context, name string, data []byte, retainUntil time.Time) (err error) {
	if err := outbox.CheckObjectName(name); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write object %q of the archive: %w", name, err)
		}
	}()
	if there, err := s.compare(ctx, name, data); there || err != nil {
		return err
	}
	opts := &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: true}
	if !retainUntil.IsZero() {
		opts.Metadata = map[string]string{"retain-until": retainUntil.UTC().Format(time.RFC3339)}
	}
	if s.retain != nil && !retainUntil.IsZero() {
		opts.BeforeWrite = func(as func(any) bool) error { return s.retain(as, retainUntil) }
	}
	err = s.bucket.WriteAll(ctx, name, data, opts)
	if gcerrors.Code(err) == gcerrors.FailedPrecondition { // somebody was faster
		_, err = s.compare(ctx, name, data)
	}
	return err
}

// compare reports whether the object is there, with these bytes. Others are an error.
func (s *Store) compare(ctx context.Context, name string, data []byte) (there bool, err error) {
	old, err := s.bucket.ReadAll(ctx, name)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return false, nil
	case err == nil && !bytes.Equal(old, data):
		err = outbox.ErrArchiveConflict
	}
	return true, err
}

// Read implements [outbox.ArchiveStore].
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	if err := outbox.CheckObjectName(name); err != nil {
		return nil, err
	}
	data, err := s.bucket.ReadAll(ctx, name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		there, bucketErr := s.bucket.IsAccessible(ctx) // no object, or no bucket?
		switch {
		case bucketErr != nil:
			err = bucketErr
		case !there:
			err = errors.Join(errors.New("there is no such bucket"), err)
		default:
			err = fmt.Errorf("%w (%w)", outbox.ErrNotArchived, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read object %q of the archive: %w", name, err)
	}
	return data, nil
}
