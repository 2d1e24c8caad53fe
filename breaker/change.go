package breaker

// change is what OnChange is told.
type change struct{ from, to State }

// announce wakes who waits for a change. It is called with mu held.
func (b *Breaker) announce() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// unlockAndTell gives mu back and tells OnChange what has changed meanwhile. The
// one who tells tells all, so that the order is kept, also when OnChange itself
// changes something.
func (b *Breaker) unlockAndTell() {
	defer b.mu.Unlock()
	for len(b.news) > 0 && !b.telling {
		next := b.news[0]
		b.news = b.news[1:]
		b.telling = true
		b.mu.Unlock()
		b.tell(next)
	}
}

// tell returns with mu held, also by panicking.
func (b *Breaker) tell(c change) {
	defer func() {
		b.mu.Lock()
		b.telling = false
	}()
	b.cfg.OnChange(c.from, c.to)
}
