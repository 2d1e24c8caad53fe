// Package webhook receives the signed callbacks of payment providers and others: it
// verifies the bytes as they came, stores them in the inbox, and answers.
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
// # Tests of your own
//
// [Preset.Sign] signs a request as the provider would.
package webhook
