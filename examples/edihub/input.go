package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/semel-go/semel/examples/internal/as2"
)

// invoic is an interchange with one invoice, and una one with two, by a partner
// whose delimiters are its own.
//
//go:embed invoic.edi
var invoic string

//go:embed una.edi
var una string

// post is what a partner posts, and what it expects to be told.
type post struct {
	id     string // Message-ID, with its angle brackets or without
	from   string // AS2-From
	body   string
	header map[string]string // that another one has not

	taken  bool   // an MDN says processed
	other  bool   // another content was taken under this Message-ID
	says   string // in the refusal
	status int    // of a refusal that is no MDN
}

// The names of partners.
const (
	acme   = "ACME"
	widget = "Widget Works" // has a space, so it travels in quotes
)

// times is how often one in so many posts comes: its partner got no answer, or
// nobody there knows that it did.
const twiceEvery = 3

// makePosts makes what partners post: n good interchanges, some of them twice,
// and everything that can be wrong. It is the same for every run.
func makePosts(n int) (posts []post) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same every time
	for i := 1; i <= n; i++ {
		p := post{id: fmt.Sprintf("<%05d@acme.example>", i), from: acme, body: interchange(invoic, i), taken: true}
		if i%4 == 0 {
			p.id, p.from, p.body = fmt.Sprintf("%05d@widget.example", i), widget, interchange(una, i)
		}
		posts = append(posts, p)
		if i%twiceEvery == 0 {
			posts = append(posts, p)
		}
	}
	random.Shuffle(len(posts), func(i, j int) { posts[i], posts[j] = posts[j], posts[i] })
	for i, bad := range badPosts() { // here and there between the others
		posts = slices.Insert(posts, (i+1)*len(posts)/20, bad, bad)
	}
	return posts
}

func interchange(template string, i int) string {
	return strings.NewReplacer("00000000000778", fmt.Sprintf("%014d", i), "342459", fmt.Sprint(340000+i), "1020", fmt.Sprint(100+i)).Replace(template)
}

// badPosts are those that are refused, and those that are taken and become dead
// letters of the transform: what is wrong is within a message.
func badPosts() []post {
	good := interchange(invoic, 90001)
	bad := func(id, body string) post { return post{id: "<" + id + "@acme.example>", from: acme, body: body} }
	with := func(p post, says string, headers ...string) post {
		p.says, p.header = says, map[string]string{}
		for i := 0; i < len(headers); i += 2 {
			p.header[headers[i]] = headers[i+1]
		}
		return p
	}
	takenAnyway := func(p post) post { p.taken = true; return p }
	byStatus := func(p post, status int) post { p.status = status; return p }
	stranger := bad("stranger", good)
	stranger.from = "Nobody"
	nameless := bad("", good)
	nameless.id = ""
	return []post{
		takenAnyway(bad("segment-count", strings.Replace(good, "UNT+20", "UNT+21", 1))),
		takenAnyway(bad("value", strings.Replace(good, "QTY+47:", "QTY+47:A", 1))),
		takenAnyway(bad("type", strings.Replace(good, "INVOIC:D:97B", "ORDERS:D:97B", 1))),
		with(bad("empty", "UNB+UNOA:3+ACME:14+HUB:14+260105:1434+77'UNZ+0+77'"), "segment 2 (UNZ)"),
		with(bad("two", good+interchange(invoic, 90002)), "a second interchange"),
		with(bad("no-end", good[:len(good)-30]), "breaks off"),
		with(bad("html", "<html>it works</html>"), "has no end"),
		with(stranger, "nobody of that name"),
		with(bad("signature", good), "a signed MDN is required", "Disposition-Notification-Options", "signed-receipt-protocol=required, pkcs7-signature"),
		with(bad("xml", good), "send application/edifact", "Content-Type", "application/xml"),
		byStatus(with(bad("later", good), "requested to an address", "Receipt-Delivery-Option", "http://partner.example/mdn"), http.StatusBadRequest),
		byStatus(with(nameless, "read header Message-ID"), http.StatusBadRequest),
	}
}

// changed is a post under the Message-ID of one that was taken, with other content.
func changed(posts []post) post {
	i := slices.IndexFunc(posts, func(p post) bool { return p.taken && p.from == acme })
	p := posts[i]
	p.body, p.taken, p.other, p.says = interchange(invoic, 99999), false, true, "another content came under this Message-ID"
	return p
}

// key is how the hub remembers the message.
func (p post) key() string {
	return messageID(&as2.Request{From: p.from, MessageID: strings.Trim(p.id, "<>")})
}
