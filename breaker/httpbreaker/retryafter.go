package httpbreaker

import (
	"net/http"
	"strings"
	"time"
)

// longestDelay bounds what a Retry-After may ask for.
const longestDelay = 24 * time.Hour

// retryAfter reads the Retry-After of an answer: seconds, or a date. A date counts
// from the answer's own one if there is one: their clock need not be ours.
func retryAfter(header http.Header, now time.Time) (delay time.Duration, ok bool) {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, ok := parseSeconds(text); ok {
		return seconds, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(header.Get("Date")); err == nil {
		now = sent
	}
	return min(max(at.Sub(now), 0), longestDelay), true
}

// parseSeconds reads decimal digits, as many as there are.
func parseSeconds(text string) (time.Duration, bool) {
	if text == "" {
		return 0, false
	}
	var delay time.Duration
	for _, digit := range []byte(text) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		delay = min(10*delay+time.Duration(digit-'0')*time.Second, longestDelay)
	}
	return delay, true
}
