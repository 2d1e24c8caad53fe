package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecodeOrders(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, input string
		want        []order
		wrong       string
	}{
		{name: "Order", input: `{"id":"o-1","customer":"c","tax_number":"DE1","amount":5}`, want: []order{{ID: "o-1", Customer: "c", TaxNumber: "DE1", Amount: 5}}},
		{name: "TwiceIsOne", input: "\ufeff" + `{"id":"o","amount":5}` + "\r\n\n" + `{"id":"o","amount":7}`, want: []order{{ID: "o", Amount: 5}}},
		{name: "Nothing", input: "\n", wrong: "x: it holds no order"},
		{name: "BrokenOff", input: `{"id":"o","amount":5}` + "\n{", wrong: "x line 2 is no order"},
		{name: "NoID", input: `{"amount":5}`, wrong: "letters, digits and .-_ only"},
		{name: "Control", input: `{"id":"\u001b[2J","amount":5}`, wrong: "letters, digits and .-_ only"},
		{name: "Long", input: `{"id":"` + strings.Repeat("o", 65) + `","amount":5}`, wrong: "1 to 64"},
		{name: "ForNothing", input: `{"id":"o"}`, wrong: `order "o" is over 0 cents`},
		{name: "Fraction", input: `{"id":"o","amount":1.5}`, wrong: "line 1 is no order"},
		{name: "LongLine", input: strings.Repeat(" ", maxLine+1), wrong: "token too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			orders, err := decodeOrders("x", strings.NewReader(tt.input))

			if tt.wrong != "" {
				require.ErrorContains(t, err, tt.wrong)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, orders)
		})
	}
}

// What comes with the example is orders, some of which go wrong at each provider.
func TestGenerateOrders(t *testing.T) {
	t.Parallel()
	orders := generateOrders(240)

	refused, fail := map[string]int{}, map[string]int{}
	for _, o := range orders {
		require.NoError(t, o.check())
		if strings.Contains(o.TaxNumber, " ") {
			refused[o.TaxNumber[:2]]++
			require.Empty(t, o.Card)
		}
		if o.Card == declined {
			fail[o.TaxNumber[:2]]++
		}
	}
	require.Equal(t, map[string]int{"DE": 6, "FR": 6}, refused)
	require.Equal(t, map[string]int{"DE": 5, "FR": 5}, fail)
}
