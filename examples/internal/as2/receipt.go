package as2

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
)

// Receipt is what a sender reads in an MDN.
type Receipt struct {
	// Text is what it says to people.
	Text string

	// MessageID is the message that it answers, without angle brackets.
	MessageID string

	Disposition Disposition

	// MIC is to be compared with one's own of what was sent, see [MIC]. It is empty
	// where the MDN has none.
	MIC string
}

// ReadReceipt reads an MDN that is not signed, as the body of an answer and its
// Content-Type.
func ReadReceipt(contentType string, body []byte) (*Receipt, error) {
	media, params, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read an MDN: Content-Type: %w", err)
	case media != "multipart/report" || !strings.EqualFold(params["report-type"], "disposition-notification"):
		return nil, fmt.Errorf("read an MDN: the Content-Type %q is none of an MDN", media)
	}
	var receipt *Receipt
	var text []byte
	for parts := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(part)
		}
		if err != nil {
			return nil, fmt.Errorf("read an MDN: its parts: %w", err)
		}
		switch media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")); {
		case media == "message/disposition-notification" && receipt == nil:
			if receipt, err = readNotification(content); err != nil {
				return nil, err
			}
		case text == nil:
			text = content
		}
	}
	if receipt == nil {
		return nil, errors.New("read an MDN: no part of it is the notification")
	}
	receipt.Text = string(bytes.TrimSpace(text))
	return receipt, nil
}

func readNotification(content []byte) (*Receipt, error) {
	fields, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(content, "\r\n\r\n"...)))).ReadMIMEHeader()
	if err != nil {
		return nil, fmt.Errorf("read an MDN: its notification: %w", err)
	}
	_, disposition, ok := strings.Cut(fields.Get("Disposition"), ";")
	if !ok {
		return nil, errors.New("read an MDN: it says no disposition")
	}
	id := fields.Get("Original-Message-Id")
	if strings.HasPrefix(id, "<") && strings.HasSuffix(id, ">") && len(id) > 1 {
		id = id[1 : len(id)-1]
	}
	return &Receipt{
		MessageID:   id,
		Disposition: Disposition(strings.TrimSpace(disposition)),
		MIC:         fields.Get("Received-Content-Mic"),
	}, nil
}
