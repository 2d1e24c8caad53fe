package main

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/semel-go/semel/examples/internal/edifact"
)

// order is what a partner orders, read from one ORDERS message.
type order struct {
	ID       string // ours: of partner and number, the same however often it is sent
	Number   string // the partner's
	Currency string
	Total    *big.Rat
	Lines    int
	Raw      string
}

// reader reads an ORDERS message.
type reader struct {
	order
	line  *line // the one whose segments come
	wrong findings
}

// line is one line of an order.
type line struct {
	segment         edifact.Segment
	quantity, price *big.Rat
	spoilt          bool // and what is missing in it is no news
}

// readOrder reads an ORDERS message of a partner. The error tells all that is wrong
// with it, each with its segment and place.
func readOrder(partner string, m edifact.Message) (order, error) {
	if m.Type != "ORDERS" {
		return order{}, m.Header.Errorf(2, "it is of type %.10q, what is taken here is ORDERS", m.Type)
	}
	r := reader{order: order{Currency: "EUR", Total: new(big.Rat), Raw: m.Text()}}
	for _, s := range m.Segments {
		r.read(s)
	}
	r.endLine()
	if r.Number == "" || len(r.Number) > 35 {
		r.wrong.add(m.Header.Errorf(0, "the message has no order number of 1 to 35 characters (BGM)"))
	}
	if r.Lines == 0 {
		r.wrong.add(m.Header.Errorf(0, "the message has no line (LIN)"))
	}
	r.ID = "ORD-" + partner + "-" + r.Number
	return r.order, r.wrong.err()
}

func (r *reader) read(s edifact.Segment) {
	qualifier := s.Component(1, 1)
	switch {
	case s.Tag == "BGM":
		r.Number = s.Component(2, 1)
	case s.Tag == "CUX" && qualifier == "2":
		r.Currency = s.Component(1, 2)
	case s.Tag == "LIN":
		r.endLine()
		r.Lines++
		r.line = &line{segment: s}
	case s.Tag == "QTY" && qualifier == "21" && r.line != nil: // ordered
		r.line.quantity = r.decimal(s)
	case s.Tag == "PRI" && qualifier == "AAA" && r.line != nil: // net
		r.line.price = r.decimal(s)
	case s.Tag == "UNS": // the sums follow
		r.endLine()
	case s.Tag == "CNT" && qualifier == "2" && s.Component(1, 2) != fmt.Sprint(r.Lines):
		r.wrong.add(s.Errorf(1, "it says %.10q lines, there are %d", s.Component(1, 2), r.Lines))
	}
}

// endLine adds the line to the order.
func (r *reader) endLine() {
	l := r.line
	r.line = nil
	switch {
	case l == nil || l.spoilt:
	case l.quantity == nil:
		r.wrong.add(l.segment.Errorf(0, "the line has no quantity (QTY+21)"))
	case l.price == nil:
		r.wrong.add(l.segment.Errorf(0, "the line has no price (PRI+AAA)"))
	default:
		r.Total.Add(r.Total, new(big.Rat).Mul(l.quantity, l.price))
	}
}

// decimal is the number behind the qualifier of a segment of the line.
func (r *reader) decimal(s edifact.Segment) *big.Rat {
	text, err := s.Decimal(1, 2)
	number, ok := new(big.Rat).SetString(text)
	if err == nil && (!ok || number.Sign() < 0) {
		err = s.Errorf(1, "%.20q is less than nothing", text)
	}
	if err != nil {
		r.line.spoilt = true
		r.wrong.add(err)
	}
	return number
}

// findings are the errors of a message, as many as a person reads.
type findings struct {
	errs []error
	more int
}

func (f *findings) add(err error) {
	const most = 5
	if len(f.errs) < most {
		f.errs = append(f.errs, err)
	} else {
		f.more++
	}
}

func (f *findings) err() error {
	if f.more > 0 {
		f.errs = append(f.errs, fmt.Errorf("and %d more", f.more))
	}
	return errors.Join(f.errs...)
}
