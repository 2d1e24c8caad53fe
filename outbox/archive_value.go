package outbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// blob is bytes of a row in JSON: {"text": "..."} where they are UTF-8, so that people
// can read and search an archive, else {"base64": "..."}; NULL is null. Each is
// exactly the bytes.
type blob []byte

// MarshalJSON implements [json.Marshaler].
func (b blob) MarshalJSON() ([]byte, error) {
	switch {
	case b == nil:
		return []byte("null"), nil
	case utf8.Valid(b):
		return plainJSON(struct {
			Text string `json:"text"`
		}{string(b)})
	}
	return plainJSON(struct {
		Base64 []byte `json:"base64"`
	}{b})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *blob) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*b = nil
		return nil
	}
	var v struct {
		Text   *string `json:"text"`
		Base64 *[]byte `json:"base64"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	switch {
	case v.Text != nil && v.Base64 == nil:
		*b = append(blob{}, *v.Text...)
	case v.Base64 != nil && v.Text == nil:
		*b = append(blob{}, *v.Base64...)
	default:
		return fmt.Errorf("bytes have to be either text or base64")
	}
	return nil
}

// stamp is a time of a row in JSON, to the microsecond: what RFC 3339 can say in its
// words, "infinity" and "-infinity" as such, and what is before the year 0 or after
// 9999 as a number, of microseconds since 1970.
type stamp struct{ pgtype.Timestamptz }

const stampLayout = "2006-01-02T15:04:05.000000Z"

// IsZero keeps a NULL out of the JSON.
func (s stamp) IsZero() bool { return !s.Valid }

// MarshalJSON implements [json.Marshaler].
func (s stamp) MarshalJSON() ([]byte, error) {
	switch t := s.Time.UTC(); {
	case !s.Valid:
		return []byte("null"), nil
	case s.InfinityModifier != pgtype.Finite:
		return json.Marshal(s.InfinityModifier.String())
	case t.Year() < 0 || t.Year() > 9999:
		return json.Marshal(t.UnixMicro())
	default:
		return json.Marshal(t.Format(stampLayout))
	}
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *stamp) UnmarshalJSON(data []byte) (err error) {
	*s = stamp{}
	s.Valid = true
	switch text := string(data); {
	case text == "null":
		s.Valid = false
	case text == `"infinity"`:
		s.InfinityModifier = pgtype.Infinity
	case text == `"-infinity"`:
		s.InfinityModifier = pgtype.NegativeInfinity
	case strings.HasPrefix(text, `"`):
		s.Time, err = time.Parse(`"`+stampLayout+`"`, text)
	default:
		var micro int64
		err = json.Unmarshal(data, &micro)
		s.Time = time.UnixMicro(micro).UTC()
	}
	return err
}

// plainJSON is JSON in which <, > and & stand as they are: it is no part of a page.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
