// Package webhook receives the signed callbacks of payment providers and others: it
// verifies the bytes as they came, stores them in the inbox, and answers. And it sends
// events in the same manner: see [Publisher].
//
//	in, err := inbox.New(pool, "billing", h, inbox.Config{})
//	...
//	hook, err := webhook.NewHandler(in, webhook.Stripe(secret), webhook.Config{})
//	...
//	http.Handle("POST /webhooks/stripe", hook)
//
// Providers call twice, out of order, and give up after seconds. So the answer is sent
// as soon as the message is stored, in milliseconds, and whoever works the inbox
// (inbox.Inbox.Work, inbox.Inbox.Run) handles it: once, however often it is sent.
// [Config.Accept] handles it while the provider waits instead.
//
// # In which order things are looked at
//
// What costs little and needs no trust comes first:
//
//  1. A deadline for the whole body, since a slow sender must not hold anything, not
//     even while being refused.
//  2. Method, content encoding, content type, declared length. A compressed body is
//     refused: what is signed are the bytes before, or those after, and nobody says
//     which.
//  3. The body, up to [Config.MaxBody].
//  4. The signature, over the bytes as they came and before anything in them is
//     looked at; in constant time. A parser never meets what a stranger wrote.
//  5. The signed time, on both sides of our clock. After the signature, so that only
//     who can sign learns that a clock is off.
//  6. Id, type and key, from where the preset says. A body that is verified and cannot
//     be read goes on, without an id.
//  7. [Config.RequireLive] and [Config.Types].
//  8. Storing, until [Config.Timeout]. A provider that hangs up does not stop it.
//
// # What is answered
//
//	200  settled: stored, duplicate, superseded, and also dead and mismatch, which are in
//	     front of a person, and whom another copy would not help; or of no interest
//	401  signature missing, malformed or wrong, too old, in the future: nothing stored
//	400, 405, 408, 413, 415  body torn, not POST, too slow, too large, of another type
//	503  not stored, or not in time, with Retry-After: it must come again
//
// Never a redirect and never 410. Register the path exactly as the provider has it: a
// mux that adds a slash answers by a redirect, which all count as a failure.
//
// A message without an id, or with one that nobody could store, is the engine's to bury:
// it becomes a dead letter, reason bad_id, and the provider is answered 200. Sent again it
// would be no better, and providers switch off endpoints that go on refusing.
//
// # The message
//
// Its id is the endpoint's name, a colon and the provider's id, so that two accounts
// never meet; type, key, version and time are what the preset finds. Payload holds the
// body byte for byte. Headers are those on a list: the provider's own, traceparent,
// tracestate, user-agent, x-request-id, [Config.Headers]; never a signature, a
// cookie or an authorization. Origin.Time is the signed time.
//
// # What is not guaranteed
//
// What a preset does not name as signed is a claim of whoever sent it. A provider that
// signs no time ([GitHub]) can have its bodies sent again by who has seen one, under
// another id where that is not signed either. And a body that is signed can be
// sent again within the tolerance by anybody: it is a duplicate then.
//
// Nothing limits how many requests are served at once; each holds its body until it
// is stored. Put a limit before it where strangers can reach it, and set the
// ReadHeaderTimeout of the [net/http.Server]: nobody can bound headers but it.
//
// # Sending
//
//	publisher, err := webhook.NewPublisher("https://shop.example.com/hook", secret, webhook.PublisherConfig{})
//	...
//	relay, err := outbox.NewRelay(pool, publisher, outbox.RelayConfig{})
//
// Each event is one POST: its payload byte for byte, its content type (without one:
// JSON if it is, else application/octet-stream), and its fields and headers under the
// names that all transports use, message-id, message-type and so on. It is signed
// as Standard Webhooks has it, with webhook-id the id of the event, the same in
// every attempt, and has an Idempotency-Key. What an answer means for the event:
//
//	2xx                      confirmed
//	408, 409, 425, 429, 5xx  failed, not before Retry-After if there is one (an hour at most)
//	3xx                      permanent: redirects are not followed, nothing goes to the other host
//	401, 403                 permanent; but five in a row, and all wait (see below)
//	any other 4xx            permanent
//	none, not connected      the endpoint is away
//	none in time, or torn    failed
//
// A 429 or 5xx (but 501 and 505), or no answer, is the event's failure as long as
// others are answered between: an event that the endpoint dies of holds up its own
// aggregate, and comes in front of a person. Once three different ones failed in a row
// it is the endpoint that is away, of which no event spends an attempt; a Retry-After is
// obeyed for all events then, five minutes at most, and nothing is sent before.
//
// A secret that was changed on the other side does not empty the outbox into
// quarantine: after five refusals in a row one request every 30 seconds tries, the
// others wait, and the log calls for a person. The four before are in quarantine.
//
// Nothing is sent twice but by whoever calls Publish. Whoever answers 2xx has the event,
// whatever the answer says: a login page or a proxy's page with status 200 would be
// taken for a confirmation. Use https, so that nobody between can answer.
//
// In HTTP a header's value is printable ASCII. So all that a message says is
// percent-encoded, as CloudEvents has it: what is no printable ASCII, space, quote
// and percent sign. (traceparent, tracestate and baggage are sent as they are, or not at
// all if they cannot be.) In webhook-id a dot is encoded too, which would move
// the boundary of what is signed. A header without a value arrives as an empty one, its
// name without regard to case; one whose name HTTP does not allow is left out, and so is
// what belongs to the connection, to the signature, or to a login (authorization,
// cookie).
//
// # Tests of your own
//
// [Preset.Sign] signs a request as the provider would.
package webhook
