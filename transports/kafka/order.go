package kafka

import "github.com/semel-go/semel/handler"

var _ handler.OrderedSource = (*Source)(nil)

// KeepsOrder implements [handler.OrderedSource]: a partition, and with it the
// key, has one owner at a time, and every owner is given its records in the
// order of their offsets, from the lowest that is not settled.
func (s *Source) KeepsOrder() error { return nil }
