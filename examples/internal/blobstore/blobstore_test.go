package blobstore_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/blob/s3blob"

	"github.com/semel-go/semel/examples/internal/blobstore"
	"github.com/semel-go/semel/outbox"
)

// fakeS3 is an S3 server of this process, and the headers of what was written there.
type fakeS3 struct {
	client *s3.Client

	mu      sync.Mutex // guards written
	written []http.Header
}

func newFakeS3(t *testing.T) *fakeS3 {
	t.Helper()
	f := &fakeS3{}
	fake := gofakes3.New(s3mem.New()).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			f.mu.Lock()
			f.written = append(f.written, r.Header.Clone())
			f.mu.Unlock()
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.client = s3.New(s3.Options{
		BaseEndpoint: aws.String(server.URL), Region: "eu-central-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	_, err := f.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("archive")})
	require.NoError(t, err)
	return f
}

func (f *fakeS3) open(t *testing.T, name string) *blob.Bucket {
	t.Helper()
	bucket, err := s3blob.OpenBucket(t.Context(), f.client, name, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bucket.Close()) })
	return bucket
}

// An archive keeps what outbox.ArchiveStore says, on each driver.
func TestStore(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		open func(t *testing.T) *blob.Bucket
	}{
		{name: "Memory", open: func(t *testing.T) *blob.Bucket {
			bucket := memblob.OpenBucket(nil)
			t.Cleanup(func() { require.NoError(t, bucket.Close()) })
			return bucket
		}},
		{name: "Folder", open: func(t *testing.T) *blob.Bucket {
			bucket, err := fileblob.OpenBucket(t.TempDir(), &fileblob.Options{NoTempDir: true})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, bucket.Close()) })
			return bucket
		}},
		{name: "S3", open: func(t *testing.T) *blob.Bucket { return newFakeS3(t).open(t, "archive") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var store outbox.ArchiveStore = blobstore.New(tt.open(t), nil)
			const name = "2026/11/30/one.jsonl.gz"
			until := time.Date(2036, 11, 30, 0, 0, 0, 0, time.UTC)
			_, err := store.Read(t.Context(), name)
			require.ErrorIs(t, err, outbox.ErrNotArchived)

			require.NoError(t, store.Create(t.Context(), name, []byte("one"), until))
			require.NoError(t, store.Create(t.Context(), name, []byte("one"), until), "a repetition")
			require.ErrorIs(t, store.Create(t.Context(), name, []byte("One"), until), outbox.ErrArchiveConflict)
			data, err := store.Read(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, "one", string(data))

			require.NoError(t, store.Create(t.Context(), "empty", nil, time.Time{}))
			data, err = store.Read(t.Context(), "empty")
			require.NoError(t, err)
			require.Empty(t, data)
			for _, bad := range []string{"", "../one", "/one", "a//b", ".one"} {
				require.ErrorIs(t, store.Create(t.Context(), bad, nil, until), outbox.ErrBadObjectName)
				_, err := store.Read(t.Context(), bad)
				require.ErrorIs(t, err, outbox.ErrBadObjectName)
			}

			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.Error(t, store.Create(ended, "late", []byte("late"), until))
			_, err = store.Read(t.Context(), "late")
			require.ErrorIs(t, err, outbox.ErrNotArchived, "whole or not at all")
		})
		t.Run(tt.name+"/ManyAtOnce", func(t *testing.T) {
			t.Parallel()

			store := blobstore.New(tt.open(t), nil)
			var writing sync.WaitGroup
			won := make([]bool, 16)
			for i := range won {
				writing.Go(func() {
					err := store.Create(context.WithoutCancel(t.Context()), "one", bytes.Repeat([]byte{byte(i)}, 1000), time.Time{})
					won[i] = err == nil
					if err != nil && !errors.Is(err, outbox.ErrArchiveConflict) {
						t.Error(err)
					}
				})
			}
			writing.Wait()

			data, err := store.Read(t.Context(), "one")
			require.NoError(t, err)
			for i := range won {
				require.Equal(t, data[0] == byte(i), won[i], "writer %d", i)
			}
		})
	}
}

// Objects that are sent in several parts are written once too, also where the server
// does not look whether there is one.
func TestStore_LargeObjects(t *testing.T) {
	t.Parallel()

	store := blobstore.New(newFakeS3(t).open(t, "archive"), nil)
	data := bytes.Repeat([]byte("0123456789abcdef"), 40<<20/16)

	require.NoError(t, store.Create(t.Context(), "large", data, time.Time{}))
	require.NoError(t, store.Create(t.Context(), "large", data, time.Time{}))
	require.ErrorIs(t, store.Create(t.Context(), "large", append(data[:len(data)-1:len(data)-1], 'x'), time.Time{}), outbox.ErrArchiveConflict)
	got, err := store.Read(t.Context(), "large")
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
}

// A bucket that is not there is no empty archive, and a server that is away is none.
func TestStore_Away(t *testing.T) {
	t.Parallel()

	store := blobstore.New(newFakeS3(t).open(t, "other"), nil)
	require.Error(t, store.Create(t.Context(), "one", nil, time.Time{}))
	_, err := store.Read(t.Context(), "one")
	require.Error(t, err)
	require.NotErrorIs(t, err, outbox.ErrNotArchived)
}

func TestS3ObjectLock(t *testing.T) {
	t.Parallel()

	fake := newFakeS3(t)
	store := blobstore.New(fake.open(t, "archive"), blobstore.S3ObjectLock)
	until := time.Date(2036, 11, 30, 0, 0, 0, 0, time.UTC)

	require.NoError(t, store.Create(t.Context(), "one", []byte("one"), until))

	last := fake.written[len(fake.written)-1]
	require.Equal(t, "COMPLIANCE", last.Get("X-Amz-Object-Lock-Mode"))
	require.Equal(t, "2036-11-30T00:00:00Z", last.Get("X-Amz-Object-Lock-Retain-Until-Date"))
	require.Equal(t, "*", last.Get("If-None-Match"))

	memory := memblob.OpenBucket(nil)
	defer memory.Close() //nolint:errcheck // it is in memory
	require.ErrorContains(t, blobstore.New(memory, blobstore.S3ObjectLock).Create(t.Context(), "one", nil, until), "not one of s3blob")
}
