package dlq

import (
	"fmt"
	"unicode/utf8"
)

const (
	// MaxErrorBytes is the longest error text that is kept.
	MaxErrorBytes = 8 << 10

	// MaxErrors is how many errors of a chain are kept.
	MaxErrors = 16

	// maxUnwraps bounds the walk through a chain that leads back to itself.
	maxUnwraps = 64
)

// Chain returns the texts of err and of the errors it wraps, outermost first,
// joined ones in their order. An error that says the same as the one around it
// (a mark such as [handler.Permanent]) is left out. At most [MaxErrors] texts
// of at most [MaxErrorBytes] come back, cut between characters.
func Chain(err error) []string {
	var texts []string
	unwraps := 0
	var walk func(error)
	walk = func(err error) {
		if unwraps++; err == nil || unwraps > maxUnwraps || len(texts) > MaxErrors {
			return
		}
		if text := errorText(err); len(texts) == 0 || texts[len(texts)-1] != text {
			texts = append(texts, text)
		}
		defer func() { _ = recover() }() // of an Unwrap: the chain ends where it cannot be followed
		switch e := err.(type) {         //nolint:errorlint // the chain itself is what we walk
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, joined := range e.Unwrap() {
				walk(joined)
			}
		}
	}
	walk(err)
	texts, _ = bound(texts)
	return texts
}

// errorText is err.Error() of anybody's type, which may panic: a message that
// failed must not kill the process with its error.
func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("the text of an error of type %T cannot be read: it panics", err)
		}
	}()
	return err.Error()
}

// bound cuts a chain to what is kept, and reports whether it had to.
func bound(texts []string) (kept []string, cut bool) {
	if len(texts) > MaxErrors {
		texts, cut = append(texts[:MaxErrors-1:MaxErrors-1], "... and more"), true
	}
	for _, text := range texts {
		cut = cut || len(text) > MaxErrorBytes
		kept = append(kept, shorten(text, MaxErrorBytes))
	}
	return kept, cut
}

// shorten returns text, or as much of it as size has room for and how much there
// was.
func shorten(text string, size int) string {
	if len(text) <= size {
		return text
	}
	mark := fmt.Sprintf("... (%d bytes)", len(text))
	return cutText(text, size-len(mark)) + mark
}

// cutText returns at most size bytes of text, not cutting a character in two.
func cutText(text string, size int) string {
	for back := 0; back < utf8.UTFMax && size > back; back++ {
		if utf8.RuneStart(text[size-back]) {
			return text[:size-back]
		}
	}
	return text[:size] // no UTF-8 anyway
}
