package campaign

// books keep account of every copy that was published, from what the children
// report. They belong to the goroutine of their group.
type books struct {
	copies      []account // by number
	unsettled   int       // copies no child has settled yet
	out         map[*process]map[int]bool
	leased      map[*process]int
	again       map[int]bool // held by a killed child, not acknowledged: they must be settled anew
	redelivered int          // to a source, or to a worker of the inbox because the one before died
	suspects    int          // in flight at the kills of this round
}

// account is what is known of one copy.
type account struct {
	deliveries int
	settled    bool
}

func newBooks() *books {
	return &books{out: map[*process]map[int]bool{}, leased: map[*process]int{}, again: map[int]bool{}}
}

// publish opens the account of the next copy.
func (b *books) publish() (number int) {
	b.copies = append(b.copies, account{})
	b.unsettled++
	return len(b.copies) - 1
}

func (b *books) delivered(p *process, n int) {
	if b.out[p] == nil {
		b.out[p] = map[int]bool{}
	}
	b.out[p][n] = true
	if b.copies[n].deliveries++; b.copies[n].deliveries > 1 {
		b.redelivered++
	}
}

func (b *books) settled(n int) {
	delete(b.again, n)
	if !b.copies[n].settled {
		b.copies[n].settled = true
		b.unsettled--
	}
}

// acked notes that p has acknowledged a copy. It need not come again then, even
// if p was killed: a worker of the inbox may hold what its source was through with.
func (b *books) acked(p *process, n int) {
	delete(b.again, n)
	b.ended(p, n)
}

// ended notes that p has no business with the copy any more: acknowledged,
// returned, or refused.
func (b *books) ended(p *process, n int) { delete(b.out[p], n) }

// held notes that p, which is about to be killed, holds a copy. If that was
// not acknowledged it must be settled anew. This is noted before the kill: the
// next one may have settled it before we hear of the end of p.
func (b *books) held(p *process, n int) {
	if b.out[p][n] {
		b.again[n] = true
	}
}

// died takes everything away from p. How far it was with what it did not hold
// cannot be known. What it had from the inbox another worker will have again.
func (b *books) died(p *process) {
	b.suspects += len(b.out[p]) + b.leased[p]
	b.redelivered += b.leased[p]
	delete(b.out, p)
	delete(b.leased, p)
}

// quiet reports that every copy is settled, and what was in flight at a kill
// is settled again.
func (b *books) quiet() bool {
	for _, out := range b.out {
		if len(out) > 0 {
			return false
		}
	}
	return b.unsettled == 0 && len(b.again) == 0
}

// inFlight is how many copies are out.
func (b *books) inFlight() (n int) {
	for _, out := range b.out {
		n += len(out)
	}
	return n
}
