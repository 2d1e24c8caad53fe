package main

import (
	"time"

	"github.com/semel-go/semel/examples/internal/edifact"
)

// document is the canonical form of an interchange: whichever delimiters, decimal
// mark and qualifiers its sender uses, readers find the same.
type document struct {
	Interchange string    `json:"interchange"`
	Sender      string    `json:"sender"`
	Recipient   string    `json:"recipient"`
	Invoices    []invoice `json:"invoices"`
}

// invoice is one message. Numbers are text, as they were written: no binary
// fraction comes near an amount.
type invoice struct {
	Number   string        `json:"number"`
	Date     string        `json:"date"`
	Buyer    party         `json:"buyer"`
	Seller   party         `json:"seller"`
	Currency string        `json:"currency,omitempty"`
	Lines    []invoiceLine `json:"lines"`
	Total    string        `json:"total,omitempty"`
}

type party struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

type invoiceLine struct {
	Number      string `json:"number"`
	Item        string `json:"item"`
	Description string `json:"description,omitempty"`
	Quantity    string `json:"quantity"`
	Unit        string `json:"unit,omitempty"`
	Price       string `json:"price,omitempty"`
	Amount      string `json:"amount,omitempty"`
}

// canonical makes the document of an interchange. Its errors name the segment.
// Letters that the syntax does not know are read, as everybody's are; another
// number of segments than was announced may mean that some got lost.
func canonical(raw []byte) (*document, error) {
	in, err := edifact.Parser{Lenient: true}.Parse(raw)
	if err != nil {
		return nil, err
	}
	for _, warning := range in.Warnings {
		if warning.Tag == "UNT" {
			return nil, warning
		}
	}
	d := &document{Interchange: in.ControlRef, Sender: in.Sender, Recipient: in.Recipient}
	for _, m := range in.Messages {
		if m.Type != "INVOIC" {
			return nil, m.Header.Errorf(2, "a message of type %q is no invoice", m.Type)
		}
		i, err := readInvoice(m)
		if err != nil {
			return nil, err
		}
		d.Invoices = append(d.Invoices, *i)
	}
	return d, nil
}

// readInvoice reads a message, segment by segment. The qualifier in front of a
// segment's data says what it means; those not named here say nothing we need.
func readInvoice(m edifact.Message) (*invoice, error) {
	i := &invoice{}
	line := &invoiceLine{} // before the first LIN, and after UNS: nobody's
	var err error
	for _, s := range m.Segments {
		switch qualifier := s.Component(1, 1); {
		case s.Tag == "BGM":
			i.Number = s.Component(2, 1)
		case s.Tag == "DTM" && (qualifier == "3" || qualifier == "137" && i.Date == ""):
			i.Date, err = readDate(s)
		case s.Tag == "NAD" && qualifier == "BY":
			i.Buyer = readParty(s)
		case s.Tag == "NAD" && qualifier == "SE":
			i.Seller = readParty(s)
		case s.Tag == "CUX":
			i.Currency = s.Component(1, 2)
		case s.Tag == "LIN":
			i.Lines = append(i.Lines, invoiceLine{Number: qualifier, Item: s.Component(3, 1)})
			line = &i.Lines[len(i.Lines)-1]
		case s.Tag == "UNS":
			line = &invoiceLine{}
		case s.Tag == "IMD":
			line.Description = s.Component(3, 4)
		case s.Tag == "QTY" && qualifier == "47":
			line.Unit = s.Component(1, 3)
			line.Quantity, err = s.Decimal(1, 2)
		case s.Tag == "PRI":
			line.Price, err = s.Decimal(1, 2)
		case s.Tag == "MOA" && (qualifier == "203" || qualifier == "66"):
			line.Amount, err = s.Decimal(1, 2)
		case s.Tag == "MOA" && (qualifier == "39" || qualifier == "128"):
			i.Total, err = s.Decimal(1, 2)
		}
		if err != nil {
			return nil, err
		}
	}
	return i, i.check(m.Header)
}

// check finds what is missing. The message is named by its first segment.
func (i *invoice) check(unh edifact.Segment) error {
	switch {
	case i.Number == "":
		return unh.Errorf(0, "the message has no invoice number (BGM)")
	case i.Date == "":
		return unh.Errorf(0, "the message has no invoice date (DTM+3 or DTM+137)")
	case len(i.Lines) == 0:
		return unh.Errorf(0, "the message has no lines (LIN)")
	}
	for _, line := range i.Lines {
		if line.Quantity == "" {
			return unh.Errorf(0, "line %q of the message has no invoiced quantity (QTY+47)", line.Number)
		}
	}
	return nil
}

func readParty(s edifact.Segment) party {
	p := party{ID: s.Component(2, 1), Name: s.Component(4, 1)}
	if p.Name == "" {
		p.Name = s.Component(3, 1) // unstructured
	}
	return p
}

// readDate reads a date of format 102 or 203.
func readDate(s edifact.Segment) (string, error) {
	layout, ok := map[string]string{"102": "20060102", "203": "200601021504"}[s.Component(1, 3)]
	date, err := time.Parse(layout, s.Component(1, 2))
	if !ok || err != nil {
		return "", s.Errorf(1, "the date is %.40q of format %.10q, which is none", s.Component(1, 2), s.Component(1, 3))
	}
	return date.Format(time.DateOnly), nil
}
