package blobstore

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
)

// S3ObjectLock is a [Retain] for S3 buckets with Object Lock: in compliance mode, in
// which nobody may delete the object or shorten the time.
func S3ObjectLock(as func(any) bool, until time.Time) error {
	var request *transfermanager.UploadObjectInput
	if !as(&request) {
		return errors.New("lock an object: the bucket is not one of s3blob")
	}
	request.ObjectLockMode = types.ObjectLockModeCompliance
	request.ObjectLockRetainUntilDate = &until
	return nil
}
