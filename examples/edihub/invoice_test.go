package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/edifact"
	"github.com/semel-go/semel/internal/services"
)

func canonicalText(t *testing.T, raw []byte) string {
	t.Helper()
	d, err := canonical(raw)
	require.NoError(t, err)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	return string(text)
}

// Two senders, two sets of delimiters, one form.
func TestCanonical(t *testing.T) {
	t.Parallel()

	require.JSONEq(t, `{"interchange": "00000000000778", "sender": "4012345000009", "recipient": "4098765000006", "invoices": [{
		"number": "342459", "date": "2026-01-05", "currency": "EUR", "total": "1612.58",
		"buyer": {"id": "4098765000006", "name": "SEMEL TRADING HOUSE"}, "seller": {"id": "4012345000009", "name": "ACME BOLTS + NUTS"},
		"lines": [
			{"number": "1", "item": "157870", "description": "HEXAGON BOLT M8", "quantity": "1020", "unit": "PCE", "price": "1.179", "amount": "1202.58"},
			{"number": "2", "item": "157871", "description": "NUT, ZINC PLATED", "quantity": "20", "unit": "PCE", "price": "20.5", "amount": "410"}]}]}`,
		canonicalText(t, []byte(invoic)))
	require.JSONEq(t, `{"interchange": "00000000000778", "sender": "4011111000002", "recipient": "4098765000006", "invoices": [{
		"number": "342459-1", "date": "2026-01-05", "currency": "USD", "total": "750.5",
		"buyer": {"id": "4098765000006"}, "seller": {"id": "4011111000002", "name": "WIDGET WORKS O'BRIEN"},
		"lines": [{"number": "1", "item": "4711,001", "description": "WIDGET, 2~3 INCH", "quantity": "1020", "unit": "PCE", "price": "0.75", "amount": "750.5"}]
	}, {
		"number": "342459-2", "date": "2026-01-05", "currency": "USD", "total": "9",
		"buyer": {"id": "4098765000006"}, "seller": {"id": "4011111000002"},
		"lines": [{"number": "1", "item": "4711,002", "quantity": "3", "unit": "PCE", "price": "3", "amount": "9"}]}]}`,
		canonicalText(t, []byte(una)))
}

// Whoever looks after the dead letters is told where to look.
func TestCanonical_Refuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, old, new, says string }{
		{name: "SegmentCount", old: "UNT+20", new: "UNT+22", says: "segment 21 (UNT), element 1, byte 460: it says 22 segments, there are 20"},
		{name: "Quantity", old: "QTY+47:1020:", new: "QTY+47:1020A:", says: `segment 11 (QTY), element 1, byte 300: "1020A" is no number`},
		{name: "NoQuantity", old: "QTY+47:1020:", new: "QTY+47::", says: `segment 11 (QTY), element 1, byte 300: "" is no number`},
		{name: "Price", old: "INV:1.179", new: "INV:$1.179", says: `segment 13 (PRI), element 1, byte 334: "$1.179" is no number`},
		{name: "Amount", old: "203:410", new: "203:41.0.0", says: "segment 17 (MOA), element 1"},
		{name: "Total", old: "39:1612.58", new: "39:1612,", says: "segment 20 (MOA), element 1"},
		{name: "Date", old: "20260105:102", new: "20260230:102", says: `segment 4 (DTM), element 1, byte 118: the date is "20260230" of format "102", which is none`},
		{name: "DateFormat", old: "20260105:102", new: "20260105:999", says: "segment 4 (DTM)"},
		{name: "NoDate", old: "DTM+3:20260105:102'\n", new: "FTX+A'\n", says: "segment 2 (UNH), byte 73: the message has no invoice date"},
		{name: "NoNumber", old: "BGM+380+342459+9", new: "BGM+380", says: "segment 2 (UNH), byte 73: the message has no invoice number"},
		{name: "NothingInvoiced", old: "QTY+47:1020:", new: "QTY+46:1020:", says: `line "1" of the message has no invoiced quantity`},
		{name: "NotAnInvoice", old: "INVOIC:D", new: "ORDERS:D", says: `segment 2 (UNH), element 2, byte 79: a message of type "ORDERS" is no invoice`},
		{name: "NoLines", old: "LIN+", new: "LOC+", says: "the message has no lines"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw := strings.ReplaceAll(invoic, tt.old, tt.new)
			require.NotEqual(t, invoic, raw)

			_, err := canonical([]byte(raw))

			var at *edifact.Error
			require.ErrorAs(t, err, &at)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// Invoices of other software, with what is wrong in them.
func TestCanonical_Real(t *testing.T) {
	t.Parallel()
	const folder = "../../../shared/data/edifact"
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		services.Missing(t, "../shared/data/edifact is absent: put the EDIFACT interchanges there")
	}
	for name, want := range map[string]string{ // a number and a total, or an error
		"invoic_d97b.edi":         `"name":"BÜTTNER WIDGET COMPANY"`,
		"invoic_d97b_una.edi":     `"total":"2137.58"`,
		"wrapped_invoic_d97b.edi": `"total":"2137.58"`,
		"invoic_d93a_una.edi":     `"total":"901.78"`,
		"invoic_d97b_bad.edi":     `segment 11 (QTY), element 1`,
		"orders-with-group.edi":   `segment 20 (UNT), element 1, byte 549: it says 21 segments, there are 18`,
		"pnrgov.edi":              `is no invoice`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join(folder, name))
			require.NoError(t, err)

			d, err := canonical(raw)

			text, _ := json.Marshal(d)
			if err != nil {
				text = []byte(err.Error())
			}
			require.Contains(t, string(text), want)
		})
	}
}

// Whatever is left in the store, the transform ends with a document or an error.
func FuzzCanonical(f *testing.F) {
	f.Add([]byte(invoic))
	f.Add([]byte(una))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := canonical(raw)
		if err != nil {
			return
		}
		text, err := json.Marshal(d)
		require.NoError(t, err)
		require.NotContains(t, string(text), "\\ufffd")
	})
}
