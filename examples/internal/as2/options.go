package as2

import "strings"

// readOptions reads Disposition-Notification-Options:
//
//	signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=optional, sha-256, sha1
//
// What is optional and not known is left out: an unsigned MDN is a receipt too
// (RFC 4130, section 7.3). What is required and cannot be done makes the answer
// a failed one (section 7.5.3), for anything else would promise it.
func (r *Request) readOptions(options string) error {
	for option := range strings.SplitSeq(options, ";") {
		if option = strings.TrimSpace(option); option == "" {
			continue
		}
		name, rest, _ := strings.Cut(option, "=")
		importance, list, _ := strings.Cut(rest, ",")
		name = strings.ToLower(strings.TrimSpace(name))
		var required bool
		switch strings.ToLower(strings.TrimSpace(importance)) {
		case "required":
			required = true
		case "optional":
		default:
			return refuse(UnsupportedFormat, "the option %q of Disposition-Notification-Options is neither required nor optional", name)
		}
		switch {
		case name == "signed-receipt-micalg":
			if !r.chooseMIC(list) && required {
				return refuse(UnsupportedMIC, "the required MIC algorithms (%s) are not known here, but for sha-256, sha-384 and sha-512", strings.TrimSpace(list))
			}
		case required && name == "signed-receipt-protocol":
			return refuse(UnsupportedFormat, "a signed MDN is required: MDNs are not signed here, make signed-receipt-protocol optional")
		case required:
			return refuse(UnsupportedFormat, "the required option %q of Disposition-Notification-Options is not known here", name)
		}
	}
	return nil
}

// chooseMIC takes the first algorithm of the sender's list that is known.
func (r *Request) chooseMIC(list string) bool {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if _, ok := hashOf(name); ok {
			r.MICAlgorithm = name
			return true
		}
	}
	return false
}
