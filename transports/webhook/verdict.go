package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/handler"
)

// longestDelay bounds what an endpoint may ask for one message: later ones of its key
// wait as long.
const longestDelay = time.Hour

// read returns nil for an answer 2xx, of which nothing else matters. Its body is read so
// that the connection can be used again, if that is not much.
func read(resp *http.Response) error {
	switch {
	case resp.StatusCode/100 == 2:
		const most = 64 << 10
		_, _ = io.CopyN(io.Discard, resp.Body, most)
		_ = resp.Body.Close()
		return nil
	case resp.StatusCode == http.StatusSwitchingProtocols:
		_ = resp.Body.Close()
		return handler.Permanent(errors.New("it answered 101, to speak another protocol: see whether the URL is right"))
	}
	err := httpbreaker.Check(resp)
	if resp.StatusCode/100 != 3 {
		return err
	}
	if to, errURL := resp.Location(); errURL == nil { // relative to where it was sent
		return fmt.Errorf("%w: it leads to %q, and redirects are not followed: give that URL, if it is the right one", err, readable(to))
	}
	return fmt.Errorf("%w: redirects are not followed", err)
}

// judge makes of an error what it means for the message: permanent, a failed attempt,
// or that the endpoint is away.
func (p *Publisher) judge(msg *handler.Message, err error) error {
	if err == nil {
		p.health.answered()
		return nil
	}
	var open *breaker.OpenError
	if errors.Is(err, breaker.ErrBudget) {
		return handler.Unavailable(err)
	}
	if errors.As(err, &open) {
		return handler.Unavailable(fmt.Errorf("%w (%w): see whether the secret is the one that the endpoint has", err, open.Breaker.Cause()))
	}
	if lost, ok := lostIn(err); ok {
		err = withoutMarks(lost)
		if away := p.health.failed(msg.ID, 0, time.Now()); away || lost.NotSent() {
			return handler.Unavailable(err)
		}
		return err
	}
	var said *httpbreaker.StatusError
	if handler.IsPermanent(err) || !errors.As(err, &said) {
		p.health.answered()
		return err
	}
	if status := said.StatusCode; status == http.StatusUnauthorized || status == http.StatusForbidden {
		return err // it keeps the breaker open
	}
	delay, asked := handler.RetryDelay(err)
	delay = min(delay, longestDelay)
	away := false
	if breaker.Of(err) == nil { // it does its part, and says not yet
		p.health.answered()
	} else {
		away = p.health.failed(msg.ID, delay, time.Now())
	}
	err = said
	if asked {
		err = handler.RetryAfter(delay, err)
	}
	if away {
		err = handler.Unavailable(err)
	}
	return err
}

// lostIn finds the error of a request without an answer.
func lostIn(err error) (lost *httpbreaker.RequestError, ok bool) {
	ok = errors.As(err, &lost)
	return lost, ok
}

// withoutMarks is what went wrong, without what others would take for the end of our own
// attempt, which says nothing about the message.
func withoutMarks(lost *httpbreaker.RequestError) error {
	if errors.Is(lost, context.DeadlineExceeded) || errors.Is(lost, context.Canceled) {
		return errors.New(lost.Error())
	}
	return lost
}
