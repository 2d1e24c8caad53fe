package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/examples/internal/as2"
	"github.com/semel-go/semel/examples/internal/edifact"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// This file is what to copy: an AS2 endpoint that answers with an MDN when the
// message is journaled, and with the same one whenever it is sent again.
//
// What is wrong with the envelope is refused in the answer, and not kept: the
// sender's software has made it, and the same post gets the same refusal. What
// is wrong within a message of the interchange is for who reads messages: an MDN
// says that something arrived unaltered, not that it was understood. It becomes a
// dead letter of the consumer, with a person in front of it.
//
// Whoever AS2-From names is believed to have sent the message. In the open, put TLS
// with client certificates before it.

const (
	edihub  = "edihub" // the consumer of what partners post
	hubName = "SEMEL HUB"

	maxBody     = 8 << 20
	bodyTimeout = 30 * time.Second
	takeTimeout = 20 * time.Second
)

var (
	errTorn         = errors.New("the body did not come to its end")
	errNotJournaled = errors.New("the message is not journaled yet: it waits in the inbox, or for a person")
	errMismatch     = &as2.Refusal{
		Disposition: as2.UnexpectedError,
		Text:        "another content came under this Message-ID before: that one is kept, this one is in front of a person; give it a Message-ID of its own",
	}
)

// hub takes what partners post. It is safe for concurrent use.
type hub struct {
	pool      *pgxpool.Pool
	inbox     *inbox.Inbox // its handler is journal.take
	claims    claims
	responder as2.Responder
	logger    *slog.Logger
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := as2.ParseRequest(r.Header)
	if req == nil { // nothing that an MDN could name
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var mdn *as2.MDN
	if err == nil {
		mdn, err = h.receive(w, r, req)
	}
	var refusal *as2.Refusal
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &refusal) && req.WantsMDN():
		mdn = h.responder.Answer(req, as2.Answer{Disposition: refusal.Disposition, Text: refusal.Text})
	case errors.Is(err, errMismatch):
		http.Error(w, refusal.Text, http.StatusConflict)
	case refusal != nil:
		http.Error(w, refusal.Text, http.StatusUnprocessableEntity)
	case errors.As(err, &tooLarge):
		http.Error(w, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
	case errors.Is(err, errTorn):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		h.logger.WarnContext(r.Context(), "a message was not taken", slog.String("partner", req.From), slog.String("message_id", req.MessageID), slog.Any("error", err))
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the message is not taken now: send it again, under the same Message-ID", http.StatusServiceUnavailable)
	}
	if mdn == nil || !req.WantsMDN() {
		return
	}
	if err := mdn.Send(w); err != nil {
		h.logger.DebugContext(r.Context(), "an MDN did not arrive", slog.Any("error", err))
	}
}

// receive reads the body of a post, if it is from a partner, and takes it.
func (h *hub) receive(w http.ResponseWriter, r *http.Request, req *as2.Request) (*as2.MDN, error) {
	// Who hangs up will ask again, and is answered at once then.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), bodyTimeout+takeTimeout)
	defer cancel()
	if err := h.knows(ctx, req); err != nil {
		return nil, err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // a slow body must not hold anything
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errTorn, err)
	}
	return h.take(ctx, req, body)
}

// take journals a message and returns its MDN. An error other than a refusal
// means that nothing is acknowledged: it must come again.
func (h *hub) take(ctx context.Context, req *as2.Request, body []byte) (*as2.MDN, error) {
	d, err := open(req, body)
	if err != nil {
		return nil, err
	}
	if d.Raw, err = h.claims.leave(ctx, body); err != nil {
		return nil, err
	}
	payload, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	id := messageID(req)
	outcome, err := h.inbox.Process(ctx, &handler.Message{
		ID: id, Type: "as2", ContentType: "application/json", Payload: payload,
		Stable: []byte(hashOf(body)), // a resend may ask for its MDN in another way; its content is the same
	})
	if err != nil {
		return nil, err
	}
	if outcome == handler.Mismatch {
		return nil, errMismatch
	}
	return h.journaled(ctx, id)
}

// knows refuses strangers, and what is for somebody else.
func (h *hub) knows(ctx context.Context, req *as2.Request) error {
	var known bool
	if err := h.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM partners WHERE as2_name = $1)`, req.From).Scan(&known); err != nil {
		return fmt.Errorf("look for partner %q: %w", req.From, err)
	}
	switch {
	case req.To != hubName:
		return &as2.Refusal{Disposition: as2.UnexpectedError, Text: fmt.Sprintf("AS2-To is %q: this is %q", req.To, hubName)}
	case !known:
		return &as2.Refusal{Disposition: as2.AuthenticationFailed, Text: fmt.Sprintf("AS2-From is %q: nobody of that name is a partner", req.From)}
	}
	return nil
}

// open reads the envelope of an interchange, which is all that is looked at here.
func open(req *as2.Request, body []byte) (*delivery, error) {
	if req.MediaType != "application/edifact" {
		return nil, &as2.Refusal{Disposition: as2.UnexpectedError, Text: fmt.Sprintf("the Content-Type is %q: send application/edifact", req.MediaType)}
	}
	in, err := edifact.Parser{Lenient: true}.Parse(body)
	if err != nil {
		return nil, &as2.Refusal{Disposition: as2.UnexpectedError, Text: err.Error()}
	}
	return &delivery{
		received: received{UNBRef: in.ControlRef, Sender: in.Sender, Recipient: in.Recipient},
		Request:  *req,
		MIC:      req.MIC(body),
		At:       time.Now().UTC().Truncate(time.Second), // as exact as the date of an MDN
	}, nil
}

// messageID is under which a message is remembered: its partner's name and the
// Message-ID, or a hash of them where they are too long together.
func messageID(req *as2.Request) string {
	id := as2.FormatName(req.From) + " " + req.MessageID
	if len(id) > dedup.MaxIDBytes {
		return dedup.HashID([]byte(req.From), []byte(req.MessageID)).String()
	}
	return id
}

// journaled returns the MDN that was committed with a message.
func (h *hub) journaled(ctx context.Context, id string) (*as2.MDN, error) {
	var b []byte
	err := h.pool.QueryRow(ctx, `SELECT mdn FROM interchanges WHERE id = $1 LIMIT 1`, id).Scan(&b)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNotJournaled
	}
	if err != nil {
		return nil, fmt.Errorf("look for the MDN of message %q: %w", id, err)
	}
	return as2.ParseMDN(b)
}
