package main

import (
	"math/big"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/edifact"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
)

func goodInterchange(t *testing.T) string {
	t.Helper()
	data, err := written.ReadFile("interchanges/good.edi")
	require.NoError(t, err)
	return string(data)
}

// The order, its event and the claim are one transaction, and a copy is a copy.
func TestIntake(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	good := goodInterchange(t)

	require.Equal(t, handler.Processed, b.take(t, good))
	require.Equal(t, handler.Duplicate, b.take(t, good))

	require.Equal(t, []string{"ORD-4012345000009-PO-77001 144.55 EUR RECEIVED"}, b.Texts(t, `SELECT concat_ws(' ', id, total, currency, status) FROM orders`))
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM orders WHERE raw LIKE 'UNH+1+%Saddle 12?+1%UNT+20+1''' AND partner = '4012345000009'`))
	require.Equal(t, []string{`Order ORD-4012345000009-PO-77001 OrderReceived 4012345000009/4399902000005/1000001 ` +
		`{"order_id":"ORD-4012345000009-PO-77001","partner":"4012345000009","number":"PO-77001","currency":"EUR","total":"144.55","lines":2}`},
		b.Texts(t, `SELECT concat_ws(' ', aggregatetype, aggregateid, type, correlation_id, convert_from(payload, 'UTF8')) FROM semel.outbox`))
	require.Equal(t, []string{"Fahrradhandel Pedal 1"}, b.Texts(t, `SELECT partner || ' ' || orders FROM interchanges`))
	require.Empty(t, b.errors(t))
}

// Whatever is refused is in front of a person with its place, and has no effect.
func TestIntake_Refuses(t *testing.T) {
	t.Parallel()
	good := goodInterchange(t)
	wrongCount, err := written.ReadFile("interchanges/wrong-count.edi")
	require.NoError(t, err)
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(good) }

	tests := []struct {
		name, data string
		says       []string
	}{
		{name: "Nothing", says: []string{"bad_id: ", "byte 0: there is no interchange: it is empty"}},
		{name: "OtherFormat", data: "<order/>", says: []string{"bad_id: ", "segment 1, byte 0: the segment has no end"}},
		{name: "SegmentCount", data: string(wrongCount), says: []string{"undecodable: ", "segment 14 (UNT), element 1, byte 295: it says 21 segments, there are 13"}},
		{name: "Empty", data: "UNB+UNOA:3+4012345000009+X+261130:0915+1'UNZ+0+1'", says: []string{"undecodable: ", "segment 2 (UNZ)", "there is no message"}},
		{name: "Two", data: good + good, says: []string{"undecodable: ", "a second interchange begins"}},
		{name: "Quantity", data: replace("21:24'", "21:1020A'"), says: []string{"undecodable: ", `segment 13 (QTY), element 1, byte 416: "1020A" is no number`}},
		{name: "NegativeQuantity", data: replace("21:24'", "21:-24'"), says: []string{`segment 13 (QTY), element 1`, `"-24" is less than nothing`}},
		{name: "Price", data: replace("AAA:3.95", "AAA:"), says: []string{`segment 14 (PRI), element 1`, `"" is no number`}},
		{name: "All", data: replace("21:24'", "21:x'", "AAA:19.90", "AAA:y"), says: []string{"segment 13 (QTY)", "segment 18 (PRI)"}},
		{name: "NoQuantity", data: replace("QTY+21:24", "QTY+59:24"), says: []string{"segment 11 (LIN), byte ", "the line has no quantity"}},
		{name: "NoPrice", data: replace("PRI+AAA:3", "PRI+AAB:3"), says: []string{"segment 11 (LIN), byte ", "the line has no price"}},
		{name: "LineCount", data: replace("CNT+2:2", "CNT+2:3"), says: []string{"segment 20 (CNT), element 1", `it says "3" lines, there are 2`}},
		{name: "NoNumber", data: replace("BGM+220+PO-77001", "BGM+220+"), says: []string{"segment 2 (UNH)", "no order number"}},
		{name: "NoLine", data: replace("LIN+", "XIN+", "CNT+2:2", "CNT+2:0"), says: []string{"segment 2 (UNH)", "has no line"}},
		{name: "OtherType", data: replace("ORDERS", "INVOIC"), says: []string{"segment 2 (UNH), element 2", `"INVOIC"`}},
		{name: "UnknownPartner", data: replace("UNB+UNOC:3+4012345000009", "UNB+UNOC:3+9999999000000"), says: []string{"permanent: segment 1 (UNB), element 2, byte 21", `"9999999000000" is no partner`}},
		{name: "TwiceInOne", data: replace("UNZ+1", "UNH+2+ORDERS:D:96A'BGM+220+PO-77001'LIN+1'QTY+21:1'PRI+AAA:1'UNS+S'UNT+7+2'UNZ+2"), says: []string{"segment 22 (UNH)", "in the interchange twice"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, false)

			require.Equal(t, handler.Dead, b.take(t, tt.data))

			refused := b.errors(t)
			require.Len(t, refused, 1)
			for _, says := range tt.says {
				require.Contains(t, refused[0], says)
			}
			require.Zero(t, b.Number(t, `SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM interchanges) + (SELECT count(*) FROM semel.outbox)`))
			require.Equal(t, tt.data, b.Texts(t, `SELECT convert_from(payload, 'UTF8') FROM semel.dead_letters`)[0])
		})
	}
}

// One order is booked once, also if it comes in two interchanges at the same time.
func TestIntake_SameOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	good := goodInterchange(t)

	var both sync.WaitGroup
	outcomes := make([]handler.Outcome, 2)
	for i, ref := range []string{"1000001", "1000009"} {
		both.Go(func() {
			outcomes[i], _ = b.in.Process(t.Context(), &handler.Message{Payload: []byte(strings.ReplaceAll(good, "1000001", ref))})
		})
	}
	both.Wait()

	require.ElementsMatch(t, []handler.Outcome{handler.Processed, handler.Dead}, outcomes)
	require.Equal(t, []string{`permanent: order "ORD-4012345000009-PO-77001" was received before, in another interchange`}, b.errors(t))
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM orders`))
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.outbox`))
}

// A partner that uses a reference twice is not ignored.
func TestIntake_ReferenceUsedTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	good := goodInterchange(t)
	require.Equal(t, handler.Processed, b.take(t, good))

	require.Equal(t, handler.Mismatch, b.take(t, strings.Replace(good, "PO-77001", "PO-77009", 1)))

	require.Len(t, b.errors(t), 1)
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM orders`))
}

// The ORDERS of somebody else: it says that it has 21 segments, and has 18. Refused
// strictly; accepted, with a warning, where we are lenient.
func TestIntake_Shared(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../shared/data/edifact/orders-with-group.edi")
	if err != nil {
		services.Missing(t, "../shared/data/edifact is absent: put the EDIFACT interchanges there")
	}

	strict := setup(t, false)
	require.Equal(t, handler.Dead, strict.take(t, string(data)))
	require.Contains(t, strict.errors(t)[0], "segment 20 (UNT), element 1, byte 549: it says 21 segments, there are 18")

	lenient := setup(t, true)
	require.Equal(t, handler.Processed, lenient.take(t, string(data)))
	require.Empty(t, lenient.errors(t))
	require.Equal(t, []string{"ORD-5400110000009-C1441747 3686.40"}, lenient.Texts(t, `SELECT id || ' ' || total FROM orders`))
	require.Equal(t, []string{"segment 20 (UNT), element 1, byte 549: it says 21 segments, there are 18"}, lenient.Texts(t, `SELECT unnest(warnings) FROM interchanges`))
}

// What comes with the example is what it says of itself.
func TestGenerateFiles(t *testing.T) {
	t.Parallel()
	files, err := generateFiles(60)
	require.NoError(t, err)

	good, orders, total := 0, 0, new(big.Rat)
	for _, f := range files {
		_, all, err := intake{parser: edifact.Parser{MaxBytes: maxFile}}.read(f.data)
		if err != nil {
			continue
		}
		good++
		orders += len(all)
		for _, o := range all {
			total.Add(total, o.Total)
		}
	}

	require.Len(t, files, 2+60+10+2+10)
	require.Equal(t, 1+60+10+3, good, "good ones, copies, and three of the odd that only the tables can tell")
	require.Equal(t, 1, total.Sign())
	require.Greater(t, orders, 180)
}

// A name that a partner would write under is none to deliver under.
func TestReadFiles_HiddenName(t *testing.T) {
	t.Parallel()
	name := t.TempDir() + "/.orders.edi"
	require.NoError(t, os.WriteFile(name, []byte("UNB"), 0o600))

	files, err := options{input: name}.readFiles()

	require.NoError(t, err)
	require.Equal(t, []file{{"orders.edi", []byte("UNB")}}, files)
}
