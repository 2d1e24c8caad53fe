package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/as2"
	"github.com/semel-go/semel/examples/internal/example"
)

const (
	// senders are how many posts partners have under way at once, and patience is
	// how long they wait for an answer.
	senders  = 8
	patience = 3 * time.Second
	again    = 100 * time.Millisecond
)

// partners post interchanges, each until the answer is an MDN or a refusal, and
// hold the hub to what it says.
type partners struct {
	client *http.Client

	posted, repeated atomic.Int64

	mu   sync.Mutex // guards what follows
	urls map[string]string
	next int
	mdns map[held]int   // MDNs that say that a message is taken, and how often they came
	said map[string]int // why posts were refused
}

// held is an MDN that a partner holds, headers and all.
type held struct{ id, mdn string }

func newPartners() *partners {
	return &partners{
		urls: make(map[string]string), mdns: make(map[held]int), said: make(map[string]int),
		client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: senders}},
	}
}

// found tells where a process of the hub takes posts.
func (p *partners) found(name, url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.urls[name] = url
}

// gone tells that nobody is there any more.
func (p *partners) gone(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.urls, name)
}

// url is where the next post goes, empty while nobody is there: the turns that a
// load balancer takes.
func (p *partners) url() (url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range hubs {
		p.next++
		if url = p.urls[hubs[p.next%len(hubs)]]; url != "" {
			break
		}
	}
	return url
}

// postAll posts all, as many in a second as rate says.
func (p *partners) postAll(ctx context.Context, posts []post, rate int) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(senders)
	for _, post := range posts {
		g.Go(func() error { return p.post(ctx, post) })
		select {
		case <-ctx.Done():
			return g.Wait()
		case <-tick.C:
		}
	}
	return g.Wait()
}

// post posts until it is answered.
func (p *partners) post(ctx context.Context, post post) error {
	for {
		if url := p.url(); url != "" {
			done, err := p.once(ctx, url, post)
			if err != nil || done {
				p.posted.Add(1)
				return err
			}
			p.repeated.Add(1)
		}
		if err := example.Wait(ctx, again); err != nil {
			return err
		}
	}
}

// once posts once. An error is an answer that the partner does not put up with.
func (p *partners) once(ctx context.Context, url string, post post) (done bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(post.body))
	if err != nil {
		return false, err
	}
	for name, value := range map[string]string{
		"AS2-From": as2.FormatName(post.from), "AS2-To": as2.FormatName(hubName), "AS2-Version": "1.0", "Message-ID": post.id,
		"Content-Type": "application/edifact", "Disposition-Notification-To": "edi@partner.example",
		"Disposition-Notification-Options": "signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=optional, sha-256",
	} {
		r.Header.Set(name, value)
	}
	for name, value := range post.header {
		r.Header.Set(name, value)
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return false, nil //nolint:nilerr // nobody there, or it died: again
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		return false, nil //nolint:nilerr // again
	}
	if err := p.judge(post, resp, body); err != nil {
		return true, fmt.Errorf("post message %q: %w", post.id, err)
	}
	return true, nil
}

// judge compares an answer with what was posted.
func (p *partners) judge(post post, resp *http.Response, body []byte) error {
	said := string(body)
	if resp.StatusCode == http.StatusOK {
		receipt, err := as2.ReadReceipt(resp.Header.Get("Content-Type"), body)
		switch {
		case err != nil:
			return err
		case receipt.MessageID != strings.Trim(post.id, "<>"):
			return fmt.Errorf("the MDN is for message %q", receipt.MessageID)
		case receipt.Disposition == as2.Processed && post.other:
			p.keep(post, resp, body) // and the tables show what it made
			return nil
		case receipt.Disposition == as2.Processed && !post.taken:
			return fmt.Errorf("it is taken, but %s", post.says)
		case receipt.Disposition == as2.Processed && receipt.MIC != as2.MIC("sha-256", []byte(post.body)):
			return fmt.Errorf("the MDN has the MIC %q, which is not of what was sent", receipt.MIC)
		case receipt.Disposition == as2.Processed:
			p.keep(post, resp, body)
			return nil
		}
		said = receipt.Text
	}
	if post.taken || !strings.Contains(said, post.says) || (post.status != 0 && post.status != resp.StatusCode) {
		return fmt.Errorf("the answer is %d %.200s", resp.StatusCode, said)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said[strings.TrimSpace(said)]++
	return nil
}

func (p *partners) keep(post post, resp *http.Response, body []byte) {
	mdn := held{post.key(), string(as2.ReceiveMDN(resp.Header, body).Bytes())}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mdns[mdn]++
}

// store puts the MDNs that partners hold beside the other tables, to be counted
// with them.
func (p *partners) store(ctx context.Context, pool *pgxpool.Pool) error {
	var rows [][]any
	for held := range p.mdns {
		rows = append(rows, []any{held.id, []byte(held.mdn)})
	}
	if _, err := pool.CopyFrom(ctx, pgx.Identifier{"partner_mdns"}, []string{"id", "mdn"}, pgx.CopyFromRows(rows)); err != nil {
		return fmt.Errorf("store the MDNs that partners hold: %w", err)
	}
	return nil
}
