package msgrow

import "github.com/jackc/pgx/v5/pgtype"

// Names takes an array of texts as a row holds it, even one that was written by
// hand: NULL is an empty text, a table of texts one list. One row that cannot be
// read would keep all from being read that come with it.
type Names []string

// SetDimensions implements [pgtype.ArraySetter].
func (n *Names) SetDimensions(dimensions []pgtype.ArrayDimension) error {
	if dimensions == nil {
		*n = nil
		return nil
	}
	size := min(len(dimensions), 1)
	for _, d := range dimensions {
		size *= int(d.Length)
	}
	*n = make(Names, size)
	return nil
}

// ScanIndex implements [pgtype.ArraySetter].
func (n Names) ScanIndex(i int) any { return (*name)(&n[i]) }

// ScanIndexType implements [pgtype.ArraySetter].
func (Names) ScanIndexType() any { return new(name) }

type name string

// ScanText implements [pgtype.TextScanner].
func (n *name) ScanText(v pgtype.Text) error {
	*n = name(v.String)
	return nil
}
