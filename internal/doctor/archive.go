package doctor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/schema"
)

//go:embed queries/archive_open.sql
var archiveOpenSQL string

const archiveCheck = "archive"

// Archive looks for events that are on their way to an archive and do not get there.
// Where nothing hangs there is no finding: most outboxes have no archive.
func Archive(ctx context.Context, db DB, schemaName string) []Finding {
	var object string
	var events int
	var verified bool
	var seconds int64
	err := db.QueryRow(ctx, schema.Qualify(archiveOpenSQL, schemaName)).Scan(&object, &events, &verified, &seconds)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return []Finding{Unread(archiveCheck, "", fmt.Errorf("look for what should have been archived: %w", err))}
	}
	hangs := "it was not written, or is not right"
	if verified {
		hangs = "it was right, and its events are not all deleted"
	}
	since := "for " + span(time.Duration(seconds)*time.Second)
	if seconds <= 0 {
		since = "since a time ahead of the clock, set by hand"
	}
	return []Finding{{
		Check: archiveCheck, Object: object, Level: Warning,
		Found: fmt.Sprintf("%d events have been on their way there %s: %s", events, since, hangs),
		Why:   "no published event is purged until they are there, and the table grows",
		Do:    "look in the log of the relays, or see why it fails: semel outbox purge -older 30d -archive FOLDER -yes; docs/archive.md says what each error wants",
	}}
}
