package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/breaker"
)

// Three failures in a row, and the bank is left alone.
func ExampleBreaker_Do() {
	bank := breaker.New("bank", breaker.Config{OpenFor: time.Minute})
	charge := func(context.Context) error { return errors.New("connection reset") }

	for range 4 {
		err := bank.Do(context.Background(), charge)
		fmt.Println(err, errors.Is(err, breaker.ErrOpen))
	}
	fmt.Println(bank.Name(), "is", bank.State())
	// Output:
	// connection reset false
	// connection reset false
	// connection reset false
	// call bank: the circuit breaker is open: not asked, ask again in 1m0s true
	// bank is open
}
