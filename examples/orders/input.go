package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// written are interchanges that somebody wrote: one is good, one counts its segments
// wrong.
//
//go:embed interchanges/*.edi
var written embed.FS

// file is what a partner delivers.
type file struct {
	name string
	data []byte
}

// us is our own id, as partners know it.
const us = "4399902000005"

const (
	againEvery = 6  // interchanges to one that is delivered twice
	wrongEvery = 25 // to one with a quantity that is none
	mostOrders = 5  // of an interchange
)

// readFiles returns what -input names, a file or a folder of files, or the
// interchanges that come with the example.
func (o options) readFiles() ([]file, error) {
	if o.input == "" {
		return generateFiles(o.interchanges)
	}
	info, err := os.Stat(o.input)
	if err != nil {
		return nil, fmt.Errorf("read the input: %w", err)
	}
	names := []string{o.input}
	if info.IsDir() {
		if names, err = filepath.Glob(filepath.Join(o.input, "[^.]*")); err != nil {
			return nil, fmt.Errorf("read the input: %w", err)
		}
	}
	var files []file
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the input: %w", err)
		}
		files = append(files, file{strings.TrimLeft(filepath.Base(name), hidden), data})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read the input: there is no file in %s", o.input)
	}
	return files, nil
}

// generateFiles returns so many good interchanges, some of them twice, and between
// them those that must be refused. They are the same for every run.
func generateFiles(n int) (files []file, err error) {
	add := func(data string) {
		files = append(files, file{fmt.Sprintf("%05d.edi", len(files)+1), []byte(data)})
	}
	good, err := written.ReadFile("interchanges/good.edi")
	if err != nil {
		return nil, err
	}
	wrong, err := written.ReadFile("interchanges/wrong-count.edi")
	if err != nil {
		return nil, err
	}
	add(string(good))
	add(string(wrong))
	odd := oddities(string(good))
	every := n/len(odd) + 1
	var again []string
	for i := 1; i <= n; i++ {
		ref := fmt.Sprintf("G%06d", i)
		data := generate(senderOf(i), ref, fmt.Sprintf("PO-%d", 1000+i), 1+i%mostOrders)
		add(data)
		if i%againEvery == 0 {
			if again = append(again, data); len(again) > 1 { // a copy comes some time later
				add(again[0])
				again = again[1:]
			}
		}
		if i%wrongEvery == 0 {
			add(strings.NewReplacer("QTY+21:3'", "QTY+21:1020A'", ref, fmt.Sprintf("W%06d", i)).Replace(data))
		}
		if i%every == 0 {
			add(odd[0])
			odd = odd[1:]
		}
	}
	for _, data := range append(again, odd...) {
		add(data)
	}
	return files, nil
}

// sender is a partner, and the character set it writes in.
type sender struct{ id, syntax, street string }

// senderOf is who sends the i-th interchange: they take turns.
func senderOf(i int) sender {
	return [...]sender{
		{"4012345000009", "UNOC", "M\xfchlweg 2"},
		{"4098765000008", "UNOW", "Mühlweg 3"},
		{"7300010000003", "UNOA", "HAMNGATAN 1"},
	}[i%3]
}

// generate writes an interchange of a number of orders.
func generate(from sender, ref, number string, orders int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "UNB+%s:3+%s:14+%s:14+261130:0930+%s'\n", from.syntax, from.id, us, ref)
	for n := 1; n <= orders; n++ {
		segments := []string{
			fmt.Sprintf("UNH+%d+ORDERS:D:96A:UN:EAN008", n),
			fmt.Sprintf("BGM+220+%s-%d+9", number, n),
			"DTM+137:20261130:102",
			fmt.Sprintf("NAD+BY+%s::9++%s", from.id, from.street),
			"CUX+2:EUR:9",
			"LIN+1++4711000000013:EN", "QTY+21:3", fmt.Sprintf("PRI+AAA:%d.95", n),
			"LIN+2++4711000000020:EN", "QTY+21:12", "PRI+AAA:0.25",
			"UNS+S", "CNT+2:2",
		}
		fmt.Fprintf(&out, "%s'\nUNT+%d+%d'\n", strings.Join(segments, "'\n"), len(segments)+1, n)
	}
	fmt.Fprintf(&out, "UNZ+%d+%s'\n", orders, ref)
	return out.String()
}

// oddities are interchanges that must be refused, each for a reason of its own. The
// last two are about the order of the good one: under its reference with another
// quantity, and once more under another reference.
func oddities(good string) []string {
	one := func(ref string) string { return generate(senderOf(2), ref, "X", 1) }
	return []string{
		"",
		`{"order": 1}`,
		"UNB+UNOA:3+7300010000003:14+" + us + ":14+261130:0930+X1'UNZ+0+X1'",
		one("X2") + one("X3"),
		generate(sender{id: "9999999000000", syntax: "UNOA"}, "X4", "X", 1),
		one("X5")[:200],
		strings.Replace(one("X6"), "ORDERS", "INVOIC", 1),
		strings.NewReplacer("QTY+21:12'\n", "", "UNT+14", "UNT+13").Replace(one("X7")),
		strings.Replace(good, "QTY+21:24'", "QTY+21:25'", 1),
		strings.ReplaceAll(good, "1000001", "1000009"),
	}
}
