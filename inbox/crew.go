package inbox

// crew runs functions in goroutines that it uses again: most of what a new one
// costs is its stack, which grows in steps, by copies, to what a database
// client needs. The goroutines end when ended is closed and what they run has
// returned.
type crew struct {
	work  chan func()
	ended <-chan struct{}
}

func newCrew(ended <-chan struct{}) *crew {
	return &crew{work: make(chan func()), ended: ended}
}

// do runs f in another goroutine. It does not block. Without a crew the
// goroutine is a new one.
func (c *crew) do(f func()) {
	if c == nil {
		go f()
		return
	}
	select {
	case c.work <- f:
	default:
		go c.serve(f)
	}
}

func (c *crew) serve(f func()) {
	for {
		f()
		select {
		case f = <-c.work:
		case <-c.ended:
			return
		}
	}
}
