package as2

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// maxMessageID is the longest Message-ID (RFC 4130, section 5.3.3).
const maxMessageID = 998

// Request is what the headers of an AS2 message say.
type Request struct {
	// From and To are the AS2 names of sender and recipient, without quotes.
	From, To string

	// MessageID is the identity of the message: no other one of From and To has it.
	// It is without the angle brackets, which some senders leave out.
	MessageID string

	// Original is the Message-ID as it came. An MDN repeats it like that.
	Original string

	// NotifyTo is the value of Disposition-Notification-To. What it says matters to
	// nobody; that it is there asks for an MDN.
	NotifyTo string

	// MICAlgorithm is how the sender spells the algorithm that it wants the MIC by.
	MICAlgorithm string

	// MediaType is the media type of the body, in lower case and without parameters.
	MediaType string
}

// WantsMDN reports whether the sender asks for an MDN.
func (r *Request) WantsMDN() bool { return r.NotifyTo != "" }

// ParseRequest reads the headers of an AS2 message.
//
// A [*Refusal] is for an MDN, and comes with the request that it answers. After
// any other error there is no request, and nothing that an MDN could name: the
// answer is an HTTP status with the error's text.
func ParseRequest(h http.Header) (*Request, error) {
	r := &Request{
		NotifyTo:     strings.TrimSpace(h.Get("Disposition-Notification-To")),
		MICAlgorithm: DefaultMIC,
	}
	var err error
	if r.From, err = readName(h, "AS2-From"); err != nil {
		return nil, err
	}
	if r.To, err = readName(h, "AS2-To"); err != nil {
		return nil, err
	}
	if err := r.readMessageID(h); err != nil {
		return nil, fmt.Errorf("read header Message-ID: %w: a message that has no name of its own cannot be sent again, nor acknowledged", err)
	}
	if h.Get("Receipt-Delivery-Option") != "" {
		return nil, errors.New("an MDN is requested to an address (Receipt-Delivery-Option): MDNs are sent only as the answer to the message, leave that header out")
	}
	if err := r.readContent(h); err != nil {
		return r, err
	}
	return r, r.readOptions(strings.Join(h.Values("Disposition-Notification-Options"), "; "))
}

func readName(h http.Header, header string) (string, error) {
	value, err := single(h, header)
	if err == nil {
		value, err = parseName(value)
	}
	if err != nil {
		return "", fmt.Errorf("read header %s: %w", header, err)
	}
	return value, nil
}

// single returns the value of a header that stands there at most once: which of
// two would the sender mean?
func single(h http.Header, name string) (string, error) {
	switch values := h.Values(name); len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", fmt.Errorf("it is there %d times", len(values))
	}
}

func (r *Request) readMessageID(h http.Header) error {
	value, err := single(h, "Message-Id")
	if err != nil {
		return err
	}
	value = strings.TrimSpace(value)
	id := value
	if strings.HasPrefix(id, "<") && strings.HasSuffix(id, ">") && len(id) > 1 {
		id = id[1 : len(id)-1]
	}
	switch {
	case strings.TrimSpace(id) == "":
		return errors.New("it is empty or missing")
	case len(id) > maxMessageID:
		return fmt.Errorf("it has %d characters, at most %d are allowed", len(id), maxMessageID)
	case strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c > '~' }):
		return errors.New("it is of other than printable ASCII characters")
	}
	r.MessageID, r.Original = id, value
	return nil
}

// readContent says no to what would have to be unwrapped first.
func (r *Request) readContent(h http.Header) error {
	var err error
	if r.MediaType, _, err = mime.ParseMediaType(h.Get("Content-Type")); err != nil {
		return refuse(UnexpectedError, "the Content-Type cannot be read: %v", err)
	}
	switch r.MediaType {
	case "application/pkcs7-mime", "application/x-pkcs7-mime":
		return refuse(DecryptionFailed, "messages that are encrypted or compressed (%s) are not read here", r.MediaType)
	case "multipart/signed":
		return refuse(AuthenticationFailed, "signed messages (%s) are not read here", r.MediaType)
	}
	switch encoding := strings.ToLower(h.Get("Content-Transfer-Encoding")); encoding {
	case "", "binary", "8bit", "7bit":
	default:
		return refuse(UnexpectedError, "the Content-Transfer-Encoding is %q: over HTTP it is binary (RFC 4130, section 5.2.1)", encoding)
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return refuse(UnexpectedError, "the Content-Encoding is %q: send the body as it is", encoding)
	}
	return nil
}
