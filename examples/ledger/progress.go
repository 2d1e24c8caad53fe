package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/outbox"
)

// look is how far the work is at a moment.
type look struct {
	at   time.Time
	news news
	left outbox.KindStatus // to be sent
}

// init is how many events are written, and not known to be published.
func (l look) init() int64 { return l.left.Pending + l.left.Waiting + l.left.Quarantined }

// sent is how many events are published, and known to be.
func (l look) sent() int64 { return max(0, l.news.Postings*eventsOfPosting-l.init()) }

func (r *run) look(ctx context.Context) (look, error) {
	l := look{at: time.Now(), news: r.desk.sum()} // first: it must not know of postings that the status does not
	status, err := outbox.NewStore(r.Schema).Status(ctx, r.Pool)
	if err != nil {
		return l, err
	}
	l.left = status.Total()
	return l, nil
}

// progress says how far the work is. It is asked more often than once a second; the
// rates are those of the last one.
func (r *run) progress(ctx context.Context) (string, error) {
	now, err := r.look(ctx)
	switch {
	case err != nil:
		return "", err
	case now.news.Began.IsZero():
		return "the relays come to share the work", nil
	case r.looks == nil:
		r.looks = []look{{at: now.news.Began}}
	}
	r.looks = append(r.looks, now)
	for len(r.looks) > 2 && now.at.Sub(r.looks[1].at) >= time.Second {
		r.looks = r.looks[1:]
	}
	before := r.looks[0]
	seconds := now.at.Sub(before.at).Seconds()
	return fmt.Sprintf("init %5d  send_success %7d  send_fail %d  lag %4d ms  rate %5.0f/s  (%.0f transactions/s; %d postings wait to be booked)",
		now.init(), now.sent(), now.news.Failed, now.left.Oldest.Milliseconds(), float64(now.sent()-before.sent())/seconds,
		float64(now.news.Transactions-before.news.Transactions)/seconds, now.news.Waiting), nil
}

// published reports that nothing is left to be sent.
func (r *run) published(ctx context.Context) (bool, error) {
	l, err := r.look(ctx)
	return l.init() == 0, err
}
