package as2

import "fmt"

// Disposition is what became of a message, as an MDN says it (RFC 4130, section
// 7.4.3).
type Disposition string

// The dispositions. Processed says that the message arrived as it was sent and
// is kept. An error says that it is not taken, a failure that the MDN cannot be
// as it was asked for, and so the message is not taken either.
const (
	Processed            Disposition = "processed"
	AuthenticationFailed Disposition = "processed/error: authentication-failed"
	DecryptionFailed     Disposition = "processed/error: decryption-failed"
	IntegrityCheckFailed Disposition = "processed/error: integrity-check-failed"
	UnexpectedError      Disposition = "processed/error: unexpected-processing-error"
	UnsupportedFormat    Disposition = "failed/failure: unsupported format"
	UnsupportedMIC       Disposition = "failed/failure: unsupported MIC-algorithms"
)

// Refusal is the error of a message that is not taken and can be told so in an
// MDN.
type Refusal struct {
	Disposition Disposition

	// Text says why, for people at the sender's.
	Text string
}

func (r *Refusal) Error() string { return r.Text }

func refuse(d Disposition, format string, args ...any) *Refusal {
	return &Refusal{Disposition: d, Text: fmt.Sprintf(format, args...)}
}
