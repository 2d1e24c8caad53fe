package outbox

// WithMaxCounted bounds what a status counts.
func (s Store) WithMaxCounted(n int) Store {
	q := *s.queries()
	q.maxCounted = n
	return Store{q: &q}
}
