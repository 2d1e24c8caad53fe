package httpbreaker

import (
	"errors"
	"io"
	"sync/atomic"
)

// body is the body of an answer: its end is the end of the exchange.
type body struct {
	io.ReadCloser
	x *exchange
}

func (b *body) Read(p []byte) (int, error) {
	b.x.reading.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.x.reading.Store(false)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		_ = b.x.finish(nil)
		return n, err
	default:
		return n, b.x.finish(err)
	}
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	_ = b.x.finish(nil)
	return err
}

// upgraded is a connection that speaks another protocol from now on.
type upgraded struct {
	io.ReadWriteCloser
	x *exchange
}

func (u *upgraded) Close() error {
	err := u.ReadWriteCloser.Close()
	u.x.stop()
	return err
}

// upload is the body of a request that may fail to be read.
type upload struct {
	io.ReadCloser
	failed atomic.Bool
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.failed.Store(true)
	}
	return n, err
}
