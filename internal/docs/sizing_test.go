package docs_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	benchLine = regexp.MustCompile(`(?m)^BENCH (\S+) ([0-9.]+) \((.*)\)$`)
	eachTakes = regexp.MustCompile(`(pending|archived) (\d+)`)
)

// The tables of docs/sizing.md follow from the lines of make bench that stand
// above them, and make bench knows their names.
func TestSizing(t *testing.T) {
	t.Parallel()

	page, known := read(t, "docs/sizing.md"), read(t, "bench/bench.go")
	values, details := map[string]float64{}, map[string]string{}
	for _, m := range benchLine.FindAllStringSubmatch(page, -1) {
		require.Contains(t, known, `{"`+m[1]+`", `, "make bench measures no such thing")
		value, err := strconv.ParseFloat(m[2], 64)
		require.NoError(t, err)
		values[m[1]], details[m[1]] = value, m[3]
	}
	each := func(what, name string) float64 {
		for _, m := range eachTakes.FindAllStringSubmatch(details[name], -1) {
			if m[1] == what {
				return number(t, m[2])
			}
		}
		require.Fail(t, "it is not in the details", "%s of %s", what, name)
		return 0
	}

	for row, want := range map[string][2]float64{
		"an event that is pending":                           {each("pending", "size.event_300"), each("pending", "size.event_2k")},
		"an event in the archive":                            {each("archived", "size.event_300"), each("archived", "size.event_2k")},
		"an event that was published":                        {values["size.event_300"], values["size.event_2k"]},
		"a message that waits in the inbox":                  {values["size.stored_300"], values["size.stored_2k"]},
		"a message that was handled, once for each consumer": {values["row.bytes"], values["row.bytes"]},
	} {
		cells := rowOf(t, page, row)
		require.Equal(t, want, [2]float64{number(t, cells[1]), number(t, cells[2])}, row)
	}

	const day, gigabyte = 86_400, 1e9
	for _, rate := range []float64{100, 1000, 10_000} {
		cells := rowOf(t, page, thousands(rate))
		rows, event := rate*day, values["size.event_300"]
		require.InDelta(t, rows, number(t, cells[1]), 0, cells)
		require.InDelta(t, rows*event/gigabyte, number(t, cells[2]), 0.06, cells)
		require.InDelta(t, 7*rows*event/gigabyte, number(t, cells[3]), 0.6, cells)
		require.InDelta(t, 14*rows*values["row.bytes"]/gigabyte, number(t, cells[4]), 0.6, cells)
	}
	require.Contains(t, page, fmt.Sprintf("10,000 a second take %.0f GB", 10_000*3600*values["size.event_300"]/gigabyte))

	_, batches, found := strings.Cut(page, "## Batch, instances, poll")
	require.True(t, found)
	for _, rate := range []float64{100, 1000, 10_000} {
		cells := rowOf(t, batches, thousands(rate))
		const roundTrips = 50 // a second, of 20 ms
		most := number(t, cells[1]) * number(t, cells[2]) * roundTrips
		require.InDelta(t, most, number(t, cells[4]), 0, cells)
		require.Greater(t, most, 2*rate, "a relay that was away must catch up")
	}
	for name, rate := range map[string]string{"outbox.write.vs_insert": "[semel 8236/s", "relay.amqp.vs_parts": "[relays 13965/s", "relay.hot_key.amqp": "[hot 2098/s"} {
		require.Contains(t, details[name], rate)
		_, figure, _ := strings.Cut(strings.TrimSuffix(rate, "/s"), " ")
		require.Contains(t, batches, thousands(number(t, figure)))
	}
}

// rowOf returns the cells of the one row of a table that begins with a cell.
func rowOf(t *testing.T, page, first string) []string {
	t.Helper()
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if strings.HasPrefix(line, "|") && cells[0] == first {
			return cells
		}
	}
	require.Fail(t, "no row begins with this", first)
	return nil
}

func number(t *testing.T, cell string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(cell, ",", ""), 64)
	require.NoError(t, err)
	return n
}

// thousands is a whole number as people read it.
func thousands(n float64) string {
	if n < 1000 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return fmt.Sprintf("%s,%03.0f", thousands(math.Floor(n/1000)), math.Mod(n, 1000))
}
