package provider

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Kind is what an entry of the ledger tells.
type Kind string

// The entries.
const (
	Called Kind = "call"   // a request to make an invoice has arrived
	Asked  Kind = "query"  // somebody asks whether a number has an invoice
	Made   Kind = "effect" // an invoice was made
)

// Entry is a line of the ledger.
type Entry struct {
	Kind   Kind      `json:"kind"`
	Number string    `json:"number"`          // the business number of the invoice
	Key    string    `json:"key,omitempty"`   // the idempotency key, at the keyed ones
	Fault  Fault     `json:"fault,omitempty"` // what goes wrong with a call
	ID     string    `json:"id,omitempty"`    // of the invoice that was made
	Body   string    `json:"body,omitempty"`  // hash of what was asked for under the key
	At     time.Time `json:"at"`

	// Waited is how long before At the request had come.
	Waited time.Duration `json:"waited,omitempty"`
}

// Read returns the entries of a ledger. The last line may be torn: its provider
// has died while it wrote, and had answered nobody.
func Read(path string) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	entries, _, err := scan(f)
	if err != nil {
		return nil, fmt.Errorf("read the ledger %s: %w", path, err)
	}
	return entries, nil
}

// scan returns the entries, and how many bytes they take.
func scan(r io.Reader) (entries []Entry, size int64, err error) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF): // what is left has no end
			return entries, size, nil
		case err != nil:
			return nil, 0, err
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
		size += int64(len(line))
	}
}
