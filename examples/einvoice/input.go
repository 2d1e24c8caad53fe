package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine bounds a line of the input.
const maxLine = 1 << 20

const (
	refusedEvery  = 40 // orders to one whose tax number is invalid
	declinedEvery = 25 // orders to one whose payment fails
)

// readOrders returns the orders of what -input names, or those that come with it. An
// order that is there twice is one.
func (o options) readOrders() ([]order, error) {
	switch o.input {
	case "":
		return generateOrders(o.orders), nil
	case "-":
		return decodeOrders("standard input", os.Stdin)
	}
	f, err := os.Open(o.input)
	if err != nil {
		return nil, fmt.Errorf("read the input: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	return decodeOrders(o.input, f)
}

func decodeOrders(name string, r io.Reader) (orders []order, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	known := make(map[string]bool)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(line) == 0 {
			continue
		}
		var o order
		if err = json.Unmarshal(line, &o); err == nil {
			err = o.check()
		}
		if err != nil {
			return nil, fmt.Errorf("read the input: %s line %d is no order: %w", name, number, err)
		}
		if !known[o.ID] {
			known[o.ID] = true
			orders = append(orders, o)
		}
	}
	if err = lines.Err(); err == nil && len(orders) == 0 {
		err = errors.New("it holds no order")
	}
	if err != nil {
		return nil, fmt.Errorf("read the input: %s: %w", name, err)
	}
	return orders, nil
}

// generateOrders returns so many orders, the same every time.
func generateOrders(n int) (orders []order) {
	names, towns := [...]string{"Huber", "Martin", "Schmitz", "Bernard", "Wolf"}, [...]string{"Ulm", "Lyon", "Graz", "Lille", "Trier", "Metz", "Jena"}
	for i := range n {
		o := order{
			ID:        fmt.Sprintf("ord-%05d", i+1),
			Customer:  names[i%len(names)] + ", " + towns[i%len(towns)],
			TaxNumber: fmt.Sprintf("DE%09d", 100_000_000+i),
			Amount:    1000 + 37*i,
		}
		if i%2 == 1 {
			o.TaxNumber = fmt.Sprintf("FR%011d", 10_000_000_000+i)
		}
		switch {
		case i%refusedEvery == refusedEvery/2 || i%refusedEvery == refusedEvery/4+1: // of both countries
			o.TaxNumber = o.TaxNumber[:2] + " unknown"
		case i%declinedEvery == declinedEvery/2:
			o.Card = declined
		}
		orders = append(orders, o)
	}
	return orders
}
