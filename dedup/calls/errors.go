package calls

import "errors"

var (
	// ErrSettled is returned by [Ledger.Do] for a message that was settled without
	// a result of this call, by another process or by a person. It is marked by
	// [handler.InFlight]: the engine looks again, and finds what the message is.
	ErrSettled = errors.New("the message is settled already: no call is made for it")

	// ErrInHand is returned by [Ledger.Do] while somebody else has the call in hand,
	// and while an earlier one may still be under way. It is marked by
	// [handler.InFlight].
	ErrInHand = errors.New("the call is in somebody else's hand")

	// ErrNotKept is returned by [Ledger.Do] and [Ledger.Result] for a call that is done
	// and whose result could not be kept: it was too large, or could not be encoded.
	// It is marked by [handler.Permanent]: the call is never repeated for that, and
	// a person can put the result in with "semel calls resolve".
	ErrNotKept = errors.New("the call is done, but its result was not kept")

	// ErrNotDone is returned by [Ledger.Result] for a call that was not made, or of
	// which nobody knows how it ended.
	ErrNotDone = errors.New("there is no result of this call")

	// ErrTimeout is the cause by which the context of a call ends after its
	// [Options.Timeout].
	ErrTimeout = errors.New("the call got no answer in time")
)
