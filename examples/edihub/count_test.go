package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
)

// The sum of a run must show every way in which it can be wrong.
func TestCountMessages(t *testing.T) {
	t.Parallel()

	// Three messages: all are journaled and archived, two are transformed and one is a
	// dead letter; of one the partner has no MDN yet.
	const event = `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, payload, published_at) VALUES (gen_random_uuid(), 'interchange', 'm1', 'EdiMessageReceived', '', now());`
	wellDone := `
		INSERT INTO semel.consumers (id, name) VALUES (7, 'transform'), (8, 'edihub');
		INSERT INTO interchanges (id, partner, message_id, unb_ref, sender, recipient, raw, received_at, mdn)
		SELECT 'm' || n, 'p', n, 'u', 's', 'r', 'raw', now(), 'mdn' FROM generate_series(1, 3) AS n;
		` + event + strings.Replace(event, "m1", "m2", 1) + strings.Replace(event, "m1", "m3", 1) + `
		INSERT INTO documents (interchange, event, document) VALUES ('m1', 'e1', '{}'), ('m2', 'e2', '{}');
		INSERT INTO semel.dead_letters (consumer_id, message_id, reason, correlation_id, fingerprint)
		VALUES (7, gen_random_uuid(), 'permanent', 'm3', 1), (8, gen_random_uuid(), 'mismatch', 'm1', 2);
		INSERT INTO archived (interchange, event, object, sha256, retain_until)
		SELECT 'm' || n, 'e' || n, n || '.edi', '` + hashOf([]byte("copy")) + `', now() FROM generate_series(1, 3) AS n;
		INSERT INTO partner_mdns (id, mdn) VALUES ('m1', 'mdn'), ('m2', 'mdn')`

	tests := []struct {
		name          string
		plant         string
		lost, doubled int64
	}{
		{name: "NothingWrong"},
		{name: "EventLost", plant: `DELETE FROM semel.outbox WHERE aggregateid = 'm1'`, lost: 1},
		{name: "EventNotPublished", plant: `UPDATE semel.outbox SET published_at = NULL WHERE aggregateid = 'm1'`, lost: 1},
		{name: "DocumentLost", plant: `DELETE FROM documents WHERE interchange = 'm1'`, lost: 1},
		{name: "DeadLetterLost", plant: `DELETE FROM semel.dead_letters WHERE reason = 'permanent'`, lost: 1},
		{name: "CopyLost", plant: `DELETE FROM archived WHERE interchange = 'm3'`, lost: 1},
		{name: "CopyUnreadable", plant: `UPDATE archived SET object = 'gone.edi' WHERE interchange = 'm3'`, lost: 1},
		{name: "CopyAltered", plant: `UPDATE archived SET sha256 = 'other' WHERE interchange = 'm3'`, lost: 1},
		{name: "ToldAndNotJournaled", plant: `DELETE FROM interchanges WHERE id = 'm1'; DELETE FROM semel.outbox WHERE aggregateid = 'm1';
			DELETE FROM documents WHERE interchange = 'm1'; DELETE FROM archived WHERE interchange = 'm1'`, lost: 1},
		{name: "ToldOtherwise", plant: `UPDATE partner_mdns SET mdn = 'other' WHERE id = 'm1'`, lost: 1},
		{name: "ToldTwice", plant: `INSERT INTO partner_mdns (id, mdn) VALUES ('m1', 'mdn')`, doubled: 1},
		{name: "ToldTwoThings", plant: `INSERT INTO partner_mdns (id, mdn) VALUES ('m1', 'other')`, lost: 1, doubled: 1},
		{name: "JournaledTwice", plant: `INSERT INTO interchanges SELECT * FROM interchanges WHERE id = 'm1'`, doubled: 1},
		{name: "TwoEvents", plant: event, doubled: 1},
		{name: "TwoDocuments", plant: `INSERT INTO documents (interchange, event, document) VALUES ('m1', 'e1', '{}')`, doubled: 1},
		{name: "DocumentAndDeadLetter", plant: `INSERT INTO documents (interchange, event, document) VALUES ('m3', 'e3', '{}')`, doubled: 1},
		{name: "TwoCopies", plant: `INSERT INTO archived SELECT * FROM archived WHERE interchange = 'm1'`, doubled: 1},
		{name: "EventOfNothing", plant: strings.Replace(event, "m1", "m9", 1), doubled: 1},
		{name: "LostAndDoubled", plant: `UPDATE documents SET interchange = 'm2'`, lost: 1, doubled: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := program.Schema(t, tablesSQL)
			s.Exec(t, wellDone)
			s.Exec(t, tt.plant)
			dir := t.TempDir()
			for _, name := range []string{"1.edi", "2.edi", "3.edi"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("copy"), 0o600))
			}

			counted, err := countMessages(t.Context(), s.Pool, s.Name, outbox.DirectoryArchive(dir))

			require.NoError(t, err)
			sum := result{posts: 4, counts: counted}
			require.Equal(t, tt.lost, sum.lost, "%s", sum)
			require.Equal(t, tt.doubled, sum.doubled, "%s", sum)
			require.Equal(t, tt.lost+tt.doubled == 0, sum.OK(), "%s", sum)
			require.EqualValues(t, 1, sum.mismatches)
		})
	}
}
