package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Config is everything about a provider but its ledger.
type Config struct {
	// Faults go wrong from the start.
	Faults Faults

	// KeyTTL is how long an idempotency key is remembered. Defaults to 24 h.
	KeyTTL time.Duration

	// Patience is how long after a call has come its work may still be done; then it
	// is not, and the answer is 503. A provider that is asked whether something was
	// done has to know how late that can be, also on a machine that stands still now
	// and then. Defaults to a minute.
	Patience time.Duration

	// Seed is what chance begins with. The entries that a ledger has already count
	// too: a provider that starts again does not meet the same fate.
	Seed uint64

	// Die ends the process. Defaults to SIGKILL.
	Die func()
}

// Invoice is what a client asks for.
type Invoice struct {
	Number    string `json:"number"`               // the client's own number
	TaxNumber string `json:"tax_number,omitempty"` // of the customer
	Amount    int    `json:"amount"`
}

// Receipt is what was made of it.
type Receipt struct {
	ID     string `json:"id"`
	Number string `json:"number"`
}

// Counts is what a provider has seen and done.
type Counts struct {
	Calls   int           `json:"calls"`   // to make an invoice
	Effects int           `json:"effects"` // invoices made
	Queries int           `json:"queries"`
	Faults  map[Fault]int `json:"faults"`
}

// Provider is the provider. It is safe for concurrent use.
type Provider struct {
	mux      *http.ServeMux
	keyTTL   time.Duration
	patience time.Duration
	kill     func()
	late     sync.WaitGroup // work that goes on though nobody waits for it

	mu       sync.Mutex // guards the fields below, and writes to the ledger
	ledger   ledger
	faults   Faults
	random   *rand.Rand
	counts   Counts
	drawn    int                  // faults, or none, for calls
	invoices map[string][]Receipt // by number
	keys     map[string]keyed
}

// keyed is what is known under an idempotency key.
type keyed struct {
	body    string // hash
	receipt Receipt
	at      time.Time
	running bool // nothing is known yet
}

// New returns a provider that goes on where its ledger ends.
func New(path string, c Config) (*Provider, error) {
	if err := c.Faults.validate(); err != nil {
		return nil, err
	}
	if c.KeyTTL == 0 {
		c.KeyTTL = 24 * time.Hour
	}
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	if c.Die == nil {
		c.Die = killSelf
	}
	ledger, entries, err := openLedger(path)
	if err != nil {
		return nil, err
	}
	p := &Provider{
		keyTTL: c.KeyTTL, patience: c.Patience, kill: c.Die, ledger: ledger, faults: c.Faults,
		random:   rand.New(rand.NewPCG(c.Seed, uint64(len(entries)))), //nolint:gosec // faults, no secrets
		counts:   Counts{Faults: map[Fault]int{}},
		invoices: map[string][]Receipt{}, keys: map[string]keyed{},
	}
	for _, e := range entries {
		p.note(e)
	}
	p.faults.Script = p.faults.Script[min(p.drawn, len(p.faults.Script)):]
	p.mux = p.routes()
	return p, nil
}

// killSelf ends the process as a power cut would.
func killSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// ServeHTTP implements [http.Handler].
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// Close waits for late work and closes the ledger.
func (p *Provider) Close() error {
	p.late.Wait()
	return p.ledger.file.Close()
}

// Counts returns what the provider has seen and done.
func (p *Provider) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.Faults = maps.Clone(c.Faults)
	return c
}

// Faults returns what goes wrong.
func (p *Provider) Faults() Faults {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults
}

// SetFaults has other things go wrong from now on, until this process ends.
func (p *Provider) SetFaults(f Faults) error {
	if err := f.validate(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
	return nil
}

// arrive notes that a request has arrived, and draws what happens to it.
func (p *Provider) arrive(kind Kind, number, key, secret string, came time.Time) (Fault, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := Entry{Kind: kind, Number: number, Key: key, At: time.Now(), Waited: time.Since(came)}
	switch {
	case p.faults.Secret != "" && secret != "Bearer "+p.faults.Secret:
		e.Fault = Unauthorized
	case time.Now().Before(p.faults.Until):
		e.Fault = Maintenance
	case kind == Called:
		e.Fault = p.faults.next(p.random)
	default:
		e.Fault = p.faults.draw(p.random, []Fault{ResetBefore, Unavailable})
	}
	return e.Fault, p.record(e)
}

// Why a key does not lead to an invoice.
var (
	errInProgress = errors.New("a call under this key is still running")
	errOtherBody  = errors.New("this key was used for something else")
)

// errTooLate is of a call that has waited for too long.
var errTooLate = errors.New("the call has waited for too long: it is not done any more")

// begin takes a key for a call, unless something is known under it.
func (p *Provider) begin(key, body string) (known Receipt, found bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.keys[key]
	switch {
	case !ok, !k.running && time.Since(k.at) > p.keyTTL:
		p.keys[key] = keyed{body: body, running: true}
		return known, false, nil
	case k.body != body:
		return known, false, errOtherBody
	case k.running:
		return known, false, errInProgress
	default:
		return k.receipt, true, nil
	}
}

// work makes an invoice. Its key, if it has one, is known from now on.
func (p *Provider) work(number, key, body string, came time.Time) (receipt Receipt, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	waited := now.Sub(came)
	if waited <= p.patience {
		receipt = Receipt{ID: fmt.Sprintf("inv_%06d", p.counts.Effects+1), Number: number}
		err = p.record(Entry{Kind: Made, Number: number, Key: key, ID: receipt.ID, Body: body, At: now, Waited: waited})
	} else {
		err = errTooLate
	}
	if err != nil {
		delete(p.keys, key)
	}
	return receipt, err
}

// of returns the invoices of a number.
func (p *Provider) of(number string) []Receipt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.invoices[number])
}

// record writes an entry and learns it.
func (p *Provider) record(e Entry) error {
	err := p.ledger.write(e)
	if err == nil {
		p.note(e)
	}
	return err
}

// note learns an entry.
func (p *Provider) note(e Entry) {
	if e.Fault != "" {
		p.counts.Faults[e.Fault]++
	}
	switch e.Kind {
	case Called:
		p.counts.Calls++
		if e.Fault != Maintenance && e.Fault != Unauthorized {
			p.drawn++
		}
	case Asked:
		p.counts.Queries++
	case Made:
		p.counts.Effects++
		receipt := Receipt{ID: e.ID, Number: e.Number}
		p.invoices[e.Number] = append(p.invoices[e.Number], receipt)
		if e.Key != "" {
			p.keys[e.Key] = keyed{body: e.Body, receipt: receipt, at: e.At}
		}
	}
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
