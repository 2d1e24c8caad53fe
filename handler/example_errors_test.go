package handler_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/handler"
)

// No attempt can mend it: it goes to the dead letters at once. Errors may be
// wrapped before and after.
func ExamplePermanent() {
	errUnknown := errors.New("no such warehouse")

	err := fmt.Errorf("ship order 42: %w", handler.Permanent(errUnknown))

	fmt.Println(err)
	fmt.Println(handler.IsPermanent(err), errors.Is(err, errUnknown))
	// Output:
	// ship order 42: no such warehouse
	// true true
}

// The next attempt waits as long as the other side asked for.
func ExampleRetryAfter() {
	err := handler.RetryAfter(200*time.Millisecond, errors.New("too many requests"))

	delay, ok := handler.RetryDelay(err)
	fmt.Println(err, delay, ok)
	// Output:
	// too many requests 200ms true
}
