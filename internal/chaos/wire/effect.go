package wire

// Types of the messages of a proof.
const (
	Paid   = "paid"   // handled
	Doomed = "doomed" // poison: its handler writes, then fails, every time
	Flaky  = "flaky"  // fails three times of four
	Broken = "broken" // fails for good until it is mended
	Late   = "late"   // stored until it is mended
)

// Effect is the payload of a message: what its handler is to do. A payload that
// is not one is poison too.
type Effect struct {
	N      int // which message it is, counted in the order sent
	Amount int // what it adds to the balance of its key
}
