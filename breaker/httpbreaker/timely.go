package httpbreaker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errLate ends a request whose deadline passed before its body was written.
var errLate = errors.New("its deadline passed before it was sent: this process stood still")

// timely is a body that is not written after the deadline of its request. A process
// that was stopped, or a machine that slept, must not wake up and send what somebody
// else has sent since; the context may not have noticed yet.
type timely struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // that of the request
}

// Read asks the clocks first, also the one on the wall, which goes on while a machine
// sleeps.
func (b *timely) Read(p []byte) (int, error) {
	if deadline, ok := b.ctx.Deadline(); ok {
		if now := time.Now(); now.After(deadline) || now.Round(0).After(deadline.Round(0)) {
			return 0, errLate
		}
	}
	return b.ReadCloser.Read(p)
}

// sendInTime makes the body of req timely, also when it is read again.
func sendInTime(req *http.Request) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}
	ctx, again := req.Context(), req.GetBody
	req.Body = &timely{ReadCloser: req.Body, ctx: ctx}
	if again == nil {
		return
	}
	req.GetBody = func() (io.ReadCloser, error) {
		body, err := again()
		if err != nil {
			return nil, err
		}
		return &timely{ReadCloser: body, ctx: ctx}, nil
	}
}
