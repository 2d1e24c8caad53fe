package httpbreaker

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/semel-go/semel/breaker"
)

// dependency is what is kept for each name.
type dependency struct {
	breaker *breaker.Breaker
	budget  *breaker.Budget
	pinned  bool // somebody holds the breaker: there must be no second one
}

// breakers are the dependencies by name. They are bounded: hosts may come from
// messages.
type breakers struct {
	cfg Config

	mu     sync.Mutex // guards what follows
	byName map[string]*dependency
	others *dependency // of the names there is no room for
}

// othersName is the name of the breaker that they share.
const othersName = "(others)"

func (bs *breakers) of(name string, pin bool) *dependency {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	d := bs.byName[name]
	if d == nil {
		if len(bs.byName) >= bs.cfg.MaxBreakers && !bs.forgetOne() && !pin {
			if bs.others == nil {
				bs.others = bs.newDependency(othersName)
			}
			return bs.others
		}
		d = bs.newDependency(name)
		bs.byName[name] = d
	}
	d.pinned = d.pinned || pin
	return d
}

// forgetOne makes room: any one that is closed is as good as new. It is called with
// mu held.
func (bs *breakers) forgetOne() bool {
	for name, d := range bs.byName {
		if !d.pinned && d.breaker.State() == breaker.Closed {
			delete(bs.byName, name)
			return true
		}
	}
	return false
}

func (bs *breakers) newDependency(name string) *dependency {
	d := &dependency{budget: breaker.NewBudget(bs.cfg.Budget)}
	cfg := bs.cfg.Breaker
	also := cfg.OnChange
	cfg.OnChange = func(from, to breaker.State) {
		bs.log(d.breaker, from, to)
		if also != nil {
			also(from, to)
		}
		if bs.cfg.OnChange != nil {
			bs.cfg.OnChange(d.breaker, from, to)
		}
	}
	d.breaker = breaker.New(name, cfg)
	return d
}

// log tells people, once for each outage.
func (bs *breakers) log(b *breaker.Breaker, from, to breaker.State) {
	ctx, logger := context.Background(), bs.cfg.Logger.With(slog.String("breaker", b.Name()))
	switch cause := b.Cause(); {
	case to == breaker.Open && errors.Is(cause, breaker.ErrRefused):
		if from == breaker.Closed {
			logger.ErrorContext(ctx, "requests wait: our credentials are refused, somebody must look at them", slog.Any("error", cause))
		}
	case from == breaker.Closed:
		logger.WarnContext(ctx, "requests wait: the host is left alone but for single trials", slog.Any("error", cause))
	case to == breaker.Closed:
		logger.InfoContext(ctx, "requests go out again")
	}
}

func (bs *breakers) stats() []breaker.Stats {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	all := make([]breaker.Stats, 0, len(bs.byName)+1)
	for _, d := range bs.byName {
		all = append(all, d.breaker.Stats())
	}
	if bs.others != nil {
		all = append(all, bs.others.breaker.Stats())
	}
	slices.SortFunc(all, func(a, b breaker.Stats) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// hostOf is the default name of a request's breaker.
func hostOf(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	host := strings.ToLower(req.URL.Host)
	switch req.URL.Scheme {
	case "https":
		return strings.TrimSuffix(host, ":443")
	case "http":
		return strings.TrimSuffix(host, ":80")
	default:
		return host
	}
}
