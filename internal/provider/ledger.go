package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// ledger is the file of a provider. It belongs to one goroutine at a time.
type ledger struct{ file *os.File }

// openLedger opens the file, makes it if there is none, and returns what an
// earlier provider wrote.
func openLedger(path string) (ledger, []Entry, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return ledger{}, nil, fmt.Errorf("open the ledger: %w", err)
	}
	entries, size, err := scan(file)
	if err == nil {
		err = file.Truncate(size) // a torn line: nobody was told of it
	}
	if err == nil {
		_, err = file.Seek(size, 0)
	}
	if err != nil {
		return ledger{}, nil, errors.Join(fmt.Errorf("read the ledger %s: %w", path, err), file.Close())
	}
	return ledger{file}, entries, nil
}

// write makes an entry survive whatever comes next.
func (l ledger) write(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write to the ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("sync the ledger: %w", err)
	}
	return nil
}
