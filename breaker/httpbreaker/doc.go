// Package httpbreaker puts a circuit breaker, timeouts and a retry budget in front
// of every HTTP request to a dependency.
//
//	bank := httpbreaker.New(httpbreaker.Config{})
//	client := bank.Client()
//	...
//	resp, err := client.Do(req) // with the context of Prepare
//	if err != nil {
//		return err
//	}
//	if err := httpbreaker.Check(resp); err != nil {
//		return err
//	}
//	defer resp.Body.Close()
//
// # What counts
//
// The breaker of a host opens after three failures in a row: no connection, TLS, a
// reset, no whole answer within RequestTimeout, status 429, or 5xx but 501 and 505.
// Every other answer shows that it does its part, once its body is read or closed.
// Answers 401 and 403 are counted apart: five in a row open it too, and somebody
// has to look. What its caller cancels counts as nothing.
//
// A Retry-After with 429 or 5xx keeps an open breaker from trying before.
//
// # What is not done
//
// Nothing is sent twice. net/http resends a POST by itself when a connection that
// it reuses turns out dead and the request has a header Idempotency-Key or
// X-Idempotency-Key; the call ledger would not know. Our transport writes that
// header in lower case, which is the same to every server (HTTP/2 knows no
// other) and different to net/http, and to a [Config.Base] of yours that looks
// for it. What net/http knows to be unsent, and GET and HEAD, it may still resend.
//
// Redirects are not followed: a RoundTripper does not, and [Transport.Client]
// hands them back. A client of your own follows them unless its CheckRedirect
// refuses; each hop is then a request of its own.
//
// # Secrets
//
// Our errors name method, host and path, never the query, a header or a body. A
// client of net/http puts its whole URL in front of them: a secret does not
// belong there.
package httpbreaker
