package webhook

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/semel-go/semel/handler"
)

// ending is how a request ended.
type ending int

const (
	unknown ending = iota // not yet

	wrongMethod
	encoded
	wrongType
	tooLarge
	slow
	torn

	unsigned
	repeated
	malformed
	wrong
	tooOld
	tooNew

	ignored
	notLive

	failed
	late

	settled    // and, behind it, one for each outcome
	lastEnding = settled + ending(handler.Mismatch)
)

// refusal is how a request ends that verify refused with err.
func refusal(err error) ending {
	switch {
	case errors.Is(err, errUnsigned):
		return unsigned
	case errors.Is(err, errRepeated):
		return repeated
	case errors.Is(err, errWrong):
		return wrong
	default:
		return malformed
	}
}

// answers are what a provider is told. It never gets a redirect, which all count as a
// failure, and never 410, on which some switch an endpoint off.
var answers = [settled]struct {
	status int
	text   string // a line for a person who looks at the provider's page; empty: no body
}{
	wrongMethod: {http.StatusMethodNotAllowed, "use POST"},
	encoded:     {http.StatusUnsupportedMediaType, "content encoding is not accepted"},
	wrongType:   {http.StatusUnsupportedMediaType, "content type is not accepted"},
	tooLarge:    {http.StatusRequestEntityTooLarge, "body is too large"},
	slow:        {http.StatusRequestTimeout, "body came too slowly"},
	torn:        {http.StatusBadRequest, "body could not be read"},

	unsigned:  {http.StatusUnauthorized, "signature is missing"},
	repeated:  {http.StatusUnauthorized, "a signed header came more than once"},
	malformed: {http.StatusUnauthorized, "signature is malformed"},
	wrong:     {http.StatusUnauthorized, "signature is wrong"},
	tooOld:    {http.StatusUnauthorized, "signed too long ago"},
	tooNew:    {http.StatusUnauthorized, "signed in the future"},

	ignored: {http.StatusOK, ""},
	notLive: {http.StatusOK, ""},

	failed: {http.StatusServiceUnavailable, "not stored, try again later"},
	late:   {http.StatusServiceUnavailable, "not stored in time, try again later"},
}

func (h *Handler) answer(w http.ResponseWriter, end ending) {
	if end > settled {
		w.WriteHeader(http.StatusOK)
		return
	}
	a := answers[end]
	header := w.Header()
	switch a.status {
	case http.StatusMethodNotAllowed:
		header.Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", strconv.Itoa(int((h.cfg.RetryAfter+time.Second-1)/time.Second)))
	}
	if a.text == "" {
		w.WriteHeader(a.status)
		return
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(a.status)
	_, _ = w.Write([]byte(a.text + "\n")) // who does not listen is not told
}
