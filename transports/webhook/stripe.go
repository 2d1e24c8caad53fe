package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const stripeHeader = "Stripe-Signature"

// Stripe is the preset of Stripe's events. A secret is the signing secret of an
// endpoint, whsec_ and all.
//
// Signed: the time, and every byte of the body. So id, type and everything else
// that the message takes from the body can be trusted; no other header can.
//
// The message: its id is the event's id; its type the event's type; its key the id of
// the object the event is about (data.object.id, of thin events related_object.id);
// OccurredAt is created. That has whole seconds and is only a hint about the order, so
// Version stays 0.
//
// Stable: everything but pending_webhooks, which counts the endpoints that have not
// answered yet. See [Preset.Fingerprint].
//
// Stripe sends an event again for 3 days, and when a person asks for it for 30: keep
// records for longer than that (inbox.Config.Retention).
//
// Stripe may make two events, with two ids, for one change. Where that matters, and
// only for types that happen once in the life of an object, let the inbox take its
// id from key and type (inbox.Config.ID).
//
// An event that is wrapped by somebody else (EventBridge, Event Grid) has no
// signature.
func Stripe(secrets ...string) Preset {
	s := stripe{}
	for _, secret := range secrets {
		s.keys = append(s.keys, key{[]byte(secret), sha256.New})
	}
	return Preset{
		scheme: s,
		traits: traits{
			name: "stripe", signature: stripeHeader, types: []string{"application/json"},
			maxBody: 1 << 20, tolerance: 5 * time.Minute, live: true,
		},
		err: checkSecrets(secrets, func(secret string) error {
			if !strings.HasPrefix(secret, "whsec_") || len(secret) < len("whsec_")+8 {
				return errors.New("is no signing secret of an endpoint: it must begin with whsec_")
			}
			return nil
		}),
	}
}

type stripe struct{ keys []key }

// verify reads t=<seconds>,v1=<hex>, with v1 repeated while secrets are rotated. What
// begins otherwise is skipped: v0 is for tests of the provider's own.
func (s stripe) verify(h http.Header, body []byte) (time.Time, error) {
	line, err := oneLine(h, stripeHeader)
	if err != nil {
		return time.Time{}, err
	}
	parts, err := split(line, ",")
	if err != nil {
		return time.Time{}, err
	}
	var at string
	var signatures [][]byte
	for _, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case name == "t" && at != "":
			return time.Time{}, errMalformed
		case name == "t":
			at = value
		case name == "v1":
			signatures = append(signatures, fromHex(value))
		}
	}
	signed, err := unix(at, time.Second)
	if err != nil {
		return time.Time{}, err
	}
	return signed, anyOf(s.keys, signatures, []byte(at), []byte("."), body)
}

func (s stripe) sign(h http.Header, body []byte, at time.Time) error {
	t := strconv.FormatInt(at.Unix(), 10)
	h.Set(stripeHeader, "t="+t+",v1="+hex.EncodeToString(s.keys[0].sum([]byte(t), []byte("."), body)))
	return nil
}

func (stripe) read(_ http.Header, body []byte) event {
	var e struct {
		ID       text  `json:"id"`
		Type     text  `json:"type"`
		Created  text  `json:"created"`
		Livemode *bool `json:"livemode"`
		Data     struct {
			Object struct {
				ID text `json:"id"`
			} `json:"object"`
		} `json:"data"`
		RelatedObject struct {
			ID text `json:"id"`
		} `json:"related_object"`
	}
	if !decode(body, &e) {
		return event{}
	}
	found := event{id: string(e.ID), kind: string(e.Type), key: string(e.Data.Object.ID), test: e.Livemode == nil || !*e.Livemode}
	if found.key == "" {
		found.key = string(e.RelatedObject.ID)
	}
	if at, err := unix(string(e.Created), time.Second); err == nil {
		found.occurred = at
	} else if at, err := time.Parse(time.RFC3339, string(e.Created)); err == nil { // thin events
		found.occurred = at
	}
	return found
}

func (stripe) stable(payload []byte) []byte { return withoutNumber(whole(payload), "pending_webhooks") }
