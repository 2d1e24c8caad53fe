package httpbreaker

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetryAfter_Parse(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name, text, date string
		want             time.Duration
		not              bool
	}{
		{name: "Seconds", text: "120", want: 2 * time.Minute},
		{name: "Zero", text: "0"},
		{name: "Spaces", text: " 7 ", want: 7 * time.Second},
		{name: "Bounded", text: "86401", want: 24 * time.Hour},
		{name: "BeyondAnyNumber", text: "99999999999999999999999999", want: 24 * time.Hour},
		{name: "LeadingZeros", text: "0000000000000000000000000000007", want: 7 * time.Second},
		{name: "Date", text: "Mon, 30 Nov 2026 12:01:00 GMT", want: time.Minute},
		{name: "DateByTheirClock", text: "Mon, 30 Nov 2026 13:01:00 GMT", date: "Mon, 30 Nov 2026 13:00:00 GMT", want: time.Minute},
		{name: "PastDate", text: "Sun, 29 Nov 2026 12:00:00 GMT"},
		{name: "FarDate", text: "Mon, 30 Nov 2099 12:00:00 GMT", want: 24 * time.Hour},
		{name: "None", not: true},
		{name: "Negative", text: "-1", not: true},
		{name: "Fraction", text: "1.5", not: true},
		{name: "Words", text: "soon", not: true},
		{name: "OtherDigits", text: "١٢", not: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			header := http.Header{}
			header.Set("Retry-After", tt.text)
			header.Set("Date", tt.date)
			delay, ok := retryAfter(header, now)
			require.Equal(t, !tt.not, ok)
			require.Equal(t, tt.want, delay)
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "120", "-1", "99999999999999999999", "Mon, 30 Nov 2026 12:01:00 GMT", "Monday, 30-Nov-26 12:01:00 GMT", "Mon Nov 30 12:01:00 2026"} {
		f.Add(seed, "Mon, 30 Nov 2026 12:00:00 GMT")
	}
	f.Fuzz(func(t *testing.T, text, date string) {
		header := http.Header{"Retry-After": {text}, "Date": {date}}
		delay, ok := retryAfter(header, time.Now())
		if delay < 0 || delay > longestDelay || !ok && delay != 0 {
			t.Fatalf("%q from %q: %s, %t", text, date, delay, ok)
		}
	})
}
