package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// errAltered is the error of a claim check for which there are other bytes than
// were left.
var errAltered = errors.New("what is there is not what was left")

// claims is the claim-check store: an event carries the check, and whoever needs
// the interchange redeems it. An object is named by the hash of its bytes, so
// that leaving it again changes nothing, and what was altered is found out.
//
// Nothing is deleted here. What no row of interchanges names, because its post
// went no further, can be deleted when it is some days old.
type claims struct {
	store outbox.ArchiveStore
	base  string // the URL of the store
}

// leave leaves raw and returns the check: its URL.
func (c claims) leave(ctx context.Context, raw []byte) (check string, err error) {
	name := objectName(raw)
	if err := c.store.Create(ctx, name, raw, time.Time{}); err != nil {
		return "", fmt.Errorf("leave %d bytes in the claim-check store: %w", len(raw), err)
	}
	return c.base + "/" + name, nil
}

// redeem returns what was left for a check.
func (c claims) redeem(ctx context.Context, check string) ([]byte, error) {
	name, ok := strings.CutPrefix(check, c.base+"/")
	if !ok {
		return nil, handler.Permanent(fmt.Errorf("redeem claim check %q: it is not of the store %q", check, c.base))
	}
	raw, err := c.store.Read(ctx, name)
	if err == nil && objectName(raw) != name {
		err = handler.Permanent(errAltered)
	}
	if err != nil {
		return nil, fmt.Errorf("redeem claim check %q: %w", check, err)
	}
	return raw, nil
}

func objectName(raw []byte) string {
	sum := hashOf(raw)
	return sum[:2] + "/" + sum + ".edi"
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// fileURL is the URL of a folder.
func fileURL(dir string) string { return (&url.URL{Scheme: "file", Path: dir}).String() }
