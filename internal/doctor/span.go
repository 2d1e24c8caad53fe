package doctor

import (
	"fmt"
	"strings"
	"time"
)

// day is how people count what is kept.
const day = 24 * time.Hour

// span is a duration for a person, exactly: a difference of a minute may be what
// is wrong. Negative is for ever.
func span(d time.Duration) string {
	if d < 0 {
		return "ever"
	}
	days, rest := d/day, d%day
	if days < 2 {
		days, rest = 0, d
	}
	text := ""
	if days > 0 {
		text = fmt.Sprintf("%dd", days)
	}
	if rest == 0 && days > 0 {
		return text
	}
	short := rest.String()
	if strings.HasSuffix(short, "m0s") {
		short = strings.TrimSuffix(short, "0s")
	}
	if strings.HasSuffix(short, "h0m") {
		short = strings.TrimSuffix(short, "0m")
	}
	return text + short
}
