// Package as2 is the receiving side of AS2 (RFC 4130), as far as one needs it
// for messages that are neither signed nor encrypted and are answered at once:
// the headers of a request, the message integrity check, and the MDN.
//
//	req, err := as2.ParseRequest(r.Header)
//	...
//	mdn := responder.Answer(req, as2.Answer{Disposition: as2.Processed, MIC: req.MIC(body), At: received})
//
// An MDN is the same bytes whenever it is made from the same values. Whoever
// keeps them can give a resent message the answer that the first one got.
//
// What is not done is refused with words: signatures, encryption, compression,
// MDNs that are to be signed, and MDNs that are to be sent later to an address.
package as2
