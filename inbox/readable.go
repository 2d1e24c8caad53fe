package inbox

import (
	"fmt"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// longestChain is how many errors an error may wrap, one way or another.
const longestChain = 10_000

// readable returns err if it can be asked what the engine will ask it, and
// else an error that says why not. The methods of an error are anybody's code:
// those of a nil pointer in an error interface panic, and so does an Is that
// knows its own type only; a chain may lead back to itself. It is called where
// user code runs, so that this costs an attempt and not the process.
func readable(err error) (answer error) {
	if err == nil {
		return nil
	}
	defer func() {
		if value := recover(); value != nil {
			answer = fmt.Errorf("error of type %T cannot be read, its methods panic: %v", err, value)
		}
	}()
	if left := longestChain; endless(err, &left) {
		return fmt.Errorf("error of type %T cannot be read, it wraps itself", err)
	}
	_ = err.Error()
	_ = dlq.Chain(err)
	_ = handler.IsPermanent(err)
	_, _ = handler.RetryDelay(err)
	_ = isOutage(err)
	_ = reasonOf(err)
	return err
}

// endless reports whether err wraps more than left errors.
func endless(err error, left *int) bool {
	if *left--; *left < 0 {
		return true
	}
	switch e := err.(type) { //nolint:errorlint // the chain itself is what we walk
	case interface{ Unwrap() error }:
		return endless(e.Unwrap(), left)
	case interface{ Unwrap() []error }:
		for _, joined := range e.Unwrap() {
			if endless(joined, left) {
				return true
			}
		}
	}
	return false
}
