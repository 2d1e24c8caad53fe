// Package edifact reads UN/EDIFACT interchanges (ISO 9735, syntax versions 1 to 4):
// what the envelope says of itself is checked, and whatever is wrong is named with its
// segment, element and byte.
//
// It knows nothing of the messages inside. Of their segments it gives the components
// by position, as the directories count them:
//
//	for _, s := range message.Segments {
//		if s.Tag == "QTY" && s.Component(1, 1) == "21" { // QTY+21:288'
//			quantity, err := s.Decimal(1, 2)
//
// Line breaks are no part of the data, wherever they are. Text is UTF-8, whatever it
// was in the interchange. Not read are several interchanges in one piece, repeated
// elements (syntax version 4), and interactive or encrypted interchanges.
package edifact

// Interchange is what one partner sends another at a time, UNB to UNZ.
type Interchange struct {
	// Syntax is the character set, as UNOA or UNOC; Version that of the syntax.
	Syntax, Version string

	// Sender and Recipient are the partners' ids. The qualifier says whose ids these
	// are: 14 for GS1's, for example. It may be empty.
	Sender, SenderQualifier       string
	Recipient, RecipientQualifier string

	// ControlRef is unique among the interchanges of the sender to this recipient.
	ControlRef string

	// Header is the UNB segment, for what else it says.
	Header Segment

	// Messages, in their order. There is at least one.
	Messages []Message

	// Warnings are what a lenient [Parser] has let pass.
	Warnings []*Error
}

// Message is one message, UNH to UNT.
type Message struct {
	// Ref is its reference, unique in the interchange.
	Ref string

	// Type, Version and Release are such as ORDERS, D and 96A.
	Type, Version, Release string

	// Segments are those between UNH and UNT.
	Segments []Segment

	// Header is the UNH segment, for what else it says.
	Header Segment

	// Raw is the message as it came, UNH to UNT. It is a part of the data that was
	// parsed, in the character set of the interchange.
	Raw []byte
}

// Text is the message as it came, in UTF-8.
func (m Message) Text() string { return m.Header.set.text(m.Raw) }

// ParseHeader reads only what comes first, UNB: who sent which interchange, also of
// one that cannot be read any further.
func ParseHeader(data []byte) (*Interchange, error) {
	scan, err := newScanner(data)
	if err != nil {
		return nil, err
	}
	e := envelope{scanner: scan, lenient: true, in: &Interchange{}}
	if err := e.header(); err != nil {
		return nil, err
	}
	return e.in, nil
}

// Parser reads interchanges. The zero value is strict.
type Parser struct {
	// Lenient lets pass, as warnings: a message with another number of segments than
	// its UNT says, and characters beyond ASCII under UNOA and UNOB, which are taken
	// for UTF-8 if all of the interchange is that, else for ISO 8859-1.
	Lenient bool

	// MaxBytes bounds an interchange. Defaults to 16 MB.
	MaxBytes int
}

// Parse reads one interchange strictly. Errors are an [*Error]. The data must not be
// changed afterwards.
func Parse(data []byte) (*Interchange, error) { return Parser{}.Parse(data) }

// Parse reads one interchange. Errors are an [*Error]. The data must not be changed
// afterwards.
func (p Parser) Parse(data []byte) (*Interchange, error) {
	limit := p.MaxBytes
	if limit == 0 {
		limit = 16 << 20
	}
	if len(data) > limit {
		return nil, &Error{Offset: limit, Text: "the interchange is larger than is read"}
	}
	scan, err := newScanner(data)
	if err != nil {
		return nil, err
	}
	e := envelope{scanner: scan, lenient: p.Lenient, in: &Interchange{}, refs: make(map[string]bool)}
	if err := e.read(); err != nil {
		return nil, err
	}
	return e.in, nil
}
