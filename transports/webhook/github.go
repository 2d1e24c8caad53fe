package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/semel-go/semel/handler"
)

const (
	githubHeader = "X-Hub-Signature-256"
	formType     = "application/x-www-form-urlencoded"
)

var errNoField = errors.New("it has not one field payload")

// GitHub is the preset of GitHub's webhooks. A secret is the text entered in the
// settings of the hook.
//
// Signed: the bytes of the body, and nothing else. X-GitHub-Event and
// X-GitHub-Delivery can be trusted as far as the connection can: somebody who has seen
// one delivery can send its body again under another id, and as an event of another
// type. Serve it by TLS only, and let a handler check that the body fits its type.
//
// The message: its id is X-GitHub-Delivery, the same when a person asks for a
// redelivery; its type X-GitHub-Event; its key the full name of the repository, else
// the login of the organization. There is no version and no time, so nothing is
// too old.
//
// Stable: all of the body.
//
// GitHub waits 10 seconds and does not send again what was answered by an error: a
// person has to ask for it, within 3 days. The ping that comes first is answered and
// ignored, unless [Config.Types] names it. Bodies have up to 25 MB, which is why that
// is the default of [Config.MaxBody] here. A hook set to
// application/x-www-form-urlencoded sends its JSON in a field: see [FormPayload].
//
// X-Hub-Signature, of SHA-1, is not looked at.
func GitHub(secrets ...string) Preset {
	s := github{}
	for _, secret := range secrets {
		s.keys = append(s.keys, key{[]byte(secret), sha256.New})
	}
	return Preset{
		scheme: s,
		traits: traits{
			name: "github", signature: githubHeader, types: []string{"application/json", formType}, maxBody: 25 << 20,
			headers: []string{
				"x-github-event", "x-github-delivery", "x-github-hook-id",
				"x-github-hook-installation-target-id", "x-github-hook-installation-target-type",
				"x-github-enterprise-host", "x-github-enterprise-version",
			},
		},
		err: checkSecrets(secrets, func(string) error { return nil }),
	}
}

type github struct{ keys []key }

func (g github) verify(h http.Header, body []byte) (time.Time, error) {
	line, err := oneLine(h, githubHeader)
	if err != nil {
		return time.Time{}, err
	}
	signature, found := strings.CutPrefix(line, "sha256=")
	if !found {
		return time.Time{}, errMalformed
	}
	return time.Time{}, anyOf(g.keys, [][]byte{fromHex(signature)}, body)
}

func (g github) sign(h http.Header, body []byte, _ time.Time) error {
	h.Set(githubHeader, "sha256="+hex.EncodeToString(g.keys[0].sum(body)))
	return nil
}

func (github) read(h http.Header, body []byte) event {
	found := event{id: h.Get("X-GitHub-Delivery"), kind: h.Get("X-GitHub-Event")}
	found.greeting = found.kind == "ping"
	if isType(h.Get("Content-Type"), formType) {
		body, _ = formField(body)
	}
	var e struct {
		Repository struct {
			FullName text `json:"full_name"`
		} `json:"repository"`
		Organization struct {
			Login text `json:"login"`
		} `json:"organization"`
	}
	decode(body, &e)
	if found.key = string(e.Repository.FullName); found.key == "" {
		found.key = string(e.Organization.Login)
	}
	return found
}

func (github) stable(payload []byte) []byte { return whole(payload) }

// FormPayload returns the JSON of a message whose payload is a form: what a hook of
// GitHub's sends that is set to application/x-www-form-urlencoded. The payload of any
// other message is returned as it is.
func FormPayload(msg *handler.Message) ([]byte, error) {
	if !isType(msg.ContentType, formType) {
		return msg.Payload, nil
	}
	field, err := formField(msg.Payload)
	if err != nil {
		return nil, handler.Permanent(fmt.Errorf("read the form of message %.255q: %w", msg.ID, err))
	}
	return field, nil
}

// formField returns the one field called payload. What url says about a form that it
// cannot read would quote it.
func formField(body []byte) ([]byte, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		return nil, errNoField
	}
	return []byte(form["payload"][0]), nil
}
