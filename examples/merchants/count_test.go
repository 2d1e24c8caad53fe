package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The sum of a run must show every way in which it can be wrong.
func TestCountApprovals(t *testing.T) {
	t.Parallel()

	// Two of three merchants are approved, and everybody has learned of it; an
	// event was published twice, as relays do.
	const wellDone = `
		INSERT INTO merchants (id, name, iban, status)
		VALUES ('m1', '', '', 'approved'), ('m2', '', '', 'approved'), ('m3', '', '', 'submitted');
		INSERT INTO topic_records (message, merchant_id) VALUES ('e1', 'm1'), ('e2', 'm2'), ('e2', 'm2');
		INSERT INTO configurations (merchant_id) VALUES ('m1'), ('m2');
		INSERT INTO search_index (merchant_id, words, version, message) VALUES ('m1', '', 2, 'e1'), ('m2', '', 2, 'e2')`

	tests := []struct {
		name          string
		plant         string
		told          []string
		lost, doubled int64
	}{
		{name: "NothingWrong"},
		{name: "EventLost", plant: `DELETE FROM topic_records WHERE merchant_id = 'm2'`, lost: 1},
		{name: "ConfigurationLost", plant: `DELETE FROM configurations WHERE merchant_id = 'm1'`, lost: 1},
		{name: "EntryLost", plant: `DELETE FROM search_index WHERE merchant_id = 'm1'`, lost: 1},
		{name: "AllLost", plant: `DELETE FROM topic_records; DELETE FROM configurations; DELETE FROM search_index`, lost: 2},
		{name: "LostInDifferentPlaces", plant: `DELETE FROM topic_records WHERE merchant_id = 'm1'; DELETE FROM search_index WHERE merchant_id = 'm2'`, lost: 2},
		{name: "ApprovalGone", told: []string{"m1", "m3"}, lost: 1},
		{name: "TwoEvents", plant: `INSERT INTO topic_records (message, merchant_id) VALUES ('e3', 'm1')`, doubled: 1},
		{name: "TwoConfigurations", plant: `INSERT INTO configurations (merchant_id) VALUES ('m1')`, doubled: 1},
		{name: "TwoEntries", plant: `INSERT INTO search_index (merchant_id, words, version, message) VALUES ('m2', '', 2, 'e2')`, doubled: 1},
		{name: "RolledBackYetPublished", plant: `INSERT INTO topic_records (message, merchant_id) VALUES ('e3', 'm3')`, doubled: 1},
		{name: "LostAndDoubled", plant: `UPDATE search_index SET merchant_id = 'm1'`, lost: 1, doubled: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Exec(t, wellDone)
			b.Exec(t, tt.plant)
			told := tt.told
			if told == nil {
				told = []string{"m1", "m2"}
			}

			counted, err := countApprovals(t.Context(), b.Pool, b.Name, told)

			require.NoError(t, err)
			sum := result{counts: counted}
			require.Equal(t, tt.lost, sum.lost, "%s", sum)
			require.Equal(t, tt.doubled, sum.doubled, "%s", sum)
			require.Equal(t, tt.lost+tt.doubled == 0, sum.OK(), "%s", sum)
			require.EqualValues(t, 2, sum.approvals)
		})
	}
}
