package dedup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
)

// The published vectors: other programs compute these too.
func TestVectors(t *testing.T) {
	t.Parallel()

	require.Equal(t, int32(855548666), dedup.ConsumerID("shipping"))
	require.Equal(t, "130d007a-93ee-8789-b54c-e4978834551d", dedup.MessageID("evt_1").String())
	require.Equal(t, int64(6356007892172317635), dedup.Fingerprint("order.paid", []byte(`{"id":1}`)))
}

func TestMessageID(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		id       string
		wantSame bool // stored as it is
	}{
		{name: "Version4", id: "9b2f8e34-5d0c-4c1e-8b1a-3f1d6f0a7c11", wantSame: true},
		{name: "Version7", id: "0190163d-8694-739b-aea5-966c26f8ad91", wantSame: true},
		{name: "Nil", id: "00000000-0000-0000-0000-000000000000", wantSame: true},
		{name: "Version8IsOurs", id: "130d007a-93ee-8789-b54c-e4978834551d"},
		{name: "UpperCase", id: "9B2F8E34-5D0C-4C1E-8B1A-3F1D6F0A7C11"},
		{name: "Braces", id: "{9b2f8e34-5d0c-4c1e-8b1a-3f1d6f0a7c1}"},
		{name: "NoHyphens", id: "9b2f8e345d0c4c1e8b1a3f1d6f0a7c11"},
		{name: "HyphenAmongDigits", id: "9b2f8e3--5d0c-4c1e-8b1a-3f1d6f0a7c11"},
		{name: "NotHex", id: "9b2f8e34-5d0c-4c1e-8b1a-3f1d6f0a7c1g"},
		{name: "Text", id: "evt_1"},
		{name: "LeadingSpace", id: " evt_1"},
	}
	seen := map[dedup.ID]string{}
	for _, tt := range tests {
		stored := dedup.MessageID(tt.id)
		require.Equal(t, tt.wantSame, stored.String() == tt.id, tt.name)
		require.Equal(t, !tt.wantSame, stored[6]>>4 == 8, "%s: a hash has version 8, and nothing else has", tt.name)
		require.Equal(t, !tt.wantSame, dedup.Text(tt.id, stored).Valid, "%s: the text is kept where it is hashed", tt.name)
		require.Empty(t, seen[stored], "%s shares its id", tt.name)
		seen[stored] = tt.name
	}
}

// Parts are told apart by their lengths, not by where one text ends.
func TestHashID_PartsDoNotRunTogether(t *testing.T) {
	t.Parallel()

	require.NotEqual(t, dedup.HashID([]byte("ab"), []byte("c")), dedup.HashID([]byte("a"), []byte("bc")))
	require.NotEqual(t, dedup.Fingerprint("a", []byte("b")), dedup.Fingerprint("ab", nil))
	require.NotEqual(t, dedup.HashID(nil), dedup.HashID(nil, nil))
}

func TestCheckID(t *testing.T) {
	t.Parallel()

	for _, id := range []string{"a", " a ", "evt_1", "ç", strings.Repeat("x", 255)} {
		require.NoError(t, dedup.CheckID(id), "%q", id)
	}
	for id, says := range map[string]string{
		"":                         "empty",
		" \t\u00a0":                "white space",
		strings.Repeat("x", 256):   "256 bytes",
		"a\x00b":                   "NUL",
		"\xff":                     "UTF-8",
		strings.Repeat("é", 10000): "20000 bytes",
	} {
		err := dedup.CheckID(id)
		require.ErrorIs(t, err, dedup.ErrBadID)
		require.ErrorContains(t, err, says)
		require.Less(t, len(err.Error()), 400, "the error does not carry a huge id along")
	}
}

// Texts that look like a UUID and have a dash too many: one made the reader run off
// its end, another was stored as the UUID of somebody else's message.
func TestMessageID_DashesInOtherPlaces(t *testing.T) {
	t.Parallel()

	for _, id := range []string{
		"00000000-0000-0000-0000-0000000000-0", "00000000-0000-0000-0000-00--00000000", "--------------------------------" + "----",
		"9b2f8e34-5d0c-4c1e-8b1a-3f1d6f0a7c--", "9b2f8e3--5d0c-4c1e-8b1a-3f1d6f0a7c11", "00000000-0000-0000-0000-00000000000-",
	} {
		require.Len(t, id, 36)
		require.Equal(t, dedup.HashID([]byte(id)), dedup.MessageID(id), id)
	}
}

func FuzzMessageID(f *testing.F) {
	for _, id := range []string{"", "evt_1", "9b2f8e34-5d0c-4c1e-8b1a-3f1d6f0a7c11", "130d007a-93ee-8789-b54c-e4978834551d", "00000000-0000-0000-0000-00--00000000", "\xff\x00"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		stored := dedup.MessageID(id)
		if stored[6]>>4 != 8 && stored.String() != id {
			t.Fatalf("%q is stored as %s, which is neither it nor a hash", id, stored)
		}
		if stored[6]>>4 == 8 && stored != dedup.HashID([]byte(id)) {
			t.Fatalf("%q is stored as %s, which is not its hash", id, stored)
		}
	})
}

// Payloads are hashed in one of two ways, by their size; nobody may see which.
func TestFingerprint_OfAnySize(t *testing.T) {
	t.Parallel()

	for _, size := range []int{0, 1, 1000, 1011, 1012, 1013, 1014, 1015, 1016, 1017, 1024, 5000} {
		payload := bytes.Repeat([]byte("x"), size)
		h := sha256.New()
		for _, part := range [][]byte{[]byte("type"), payload} {
			require.NoError(t, binary.Write(h, binary.BigEndian, uint32(len(part))))
			h.Write(part)
		}
		require.Equal(t, int64(binary.BigEndian.Uint64(h.Sum(nil))), dedup.Fingerprint("type", payload), size)
	}
}
