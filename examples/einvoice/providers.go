package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/provider"
)

// chances is what goes wrong at a provider all the time, beside its maintenance. With
// all but the last two, the document is made and nobody is told.
func chances() map[provider.Fault]float64 {
	return map[provider.Fault]float64{
		provider.Silent: 0.04, provider.Late: 0.03, provider.ResetAfter: 0.04, provider.ErrorAfter: 0.02, provider.Die: 0.01,
		provider.ResetBefore: 0.02, provider.Unavailable: 0.02,
	}
}

// lateBy is how long late work takes: the client has given up by then, and the
// answer to the question whether it was done would still be no.
const lateBy = callTimeout + callGrace/2

// providers are those that make documents: somebody else's, each a process with a
// ledger file of its own.
type providers struct {
	folder   string
	kept     map[string]*provider.Keeper // by name
	accounts []account
}

// playProvider is the process of a provider.
func playProvider(args []string) error {
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return provider.Main(ctx, args, os.Stdin, os.Stdout, os.Stderr)
}

// startProviders starts one that knows no idempotency keys, one that does, or both.
func startProviders(variant string) (p *providers, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var chance []string
	for fault, likely := range chances() {
		chance = append(chance, fmt.Sprintf("%s=%g", fault, likely))
	}
	p = &providers{kept: make(map[string]*provider.Keeper)}
	if p.folder, err = os.MkdirTemp("", "semel-einvoice-"); err != nil {
		return nil, err
	}
	for i, a := range []account{{Name: variantQuery}, {Name: variantKeys, Keys: true}} {
		if variant != variantBoth && variant != a.Name {
			continue
		}
		keeper, err := provider.Keep(func(addr string) *exec.Cmd {
			return exec.Command(program, providerPart, "-attended", "-addr", addr, "-ledger", p.ledger(a.Name), //nolint:gosec // ourselves
				"-chance", strings.Join(chance, ","), "-late-by", lateBy.String(), "-seed", fmt.Sprint(3+i))
		})
		if err != nil {
			p.close()
			return nil, err
		}
		a.URL = keeper.URL() + "/invoices"
		if a.Keys {
			a.URL = keeper.URL() + "/keyed/invoices"
		}
		p.kept[a.Name], p.accounts = keeper, append(p.accounts, a)
	}
	return p, nil
}

// ledger is the file of a provider.
func (p *providers) ledger(name string) string { return filepath.Join(p.folder, name+".jsonl") }

// entries is all that reached the providers, and what they did.
func (p *providers) entries() (map[string][]provider.Entry, error) {
	all := make(map[string][]provider.Entry)
	for _, a := range p.accounts {
		entries, err := provider.Read(p.ledger(a.Name))
		if err != nil {
			return nil, err
		}
		all[a.Name] = entries
	}
	return all, nil
}

// maintain begins the maintenance of all providers.
func (p *providers) maintain(ctx context.Context, d time.Duration) error {
	var errs []error
	for _, keeper := range p.kept {
		errs = append(errs, maintain(ctx, keeper.URL()+"/faults", time.Now().Add(d)))
	}
	return errors.Join(errs...)
}

func maintain(ctx context.Context, url string, until time.Time) error {
	body, err := json.Marshal(provider.Faults{Chance: chances(), LateBy: lateBy, Until: until})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("begin the maintenance: %s", resp.Status)
	}
	return nil
}

// stop ends the providers, once all that they have begun is done.
func (p *providers) stop() {
	for _, keeper := range p.kept {
		keeper.Close()
	}
}

// close ends the providers and removes their files.
func (p *providers) close() {
	p.stop()
	_ = os.RemoveAll(p.folder)
}
