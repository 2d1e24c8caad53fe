package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HMACConfig describes a provider that signs with a shared secret and has no preset of
// its own. Secrets and Header are required.
type HMACConfig struct {
	// Name is the default of [Config.Endpoint]. Defaults to "hmac".
	Name string

	// Secrets are those that are valid at the moment, in the form that KeyForm says.
	Secrets []string

	// KeyForm is how a secret is written: [Text], [Hex] or [Base64]. Defaults to
	// [Text], its very bytes.
	KeyForm Encoding

	// Header holds the signature.
	Header string

	// Prefix stands before each signature, for example "sha256=" or "v1=".
	// Signatures without it are skipped.
	Prefix string

	// Separator stands between several signatures. Empty: there is one.
	Separator string

	// Algorithm defaults to [SHA256].
	Algorithm Algorithm

	// Encoding of a signature: [Hex], [Base64] or [Base64URL]. Defaults to [Hex].
	Encoding Encoding

	// Template is what is signed: text around {id}, {timestamp}, {url} and {body},
	// each at most once. {body} must be there. Defaults to "{body}".
	Template string

	// URL is what {url} stands for: the address as the provider has it. It is never
	// taken from the request, which proxies rewrite.
	URL string

	// TimestampHeader holds when it was signed, and TimestampUnit, [time.Second] or
	// [time.Millisecond], how that is counted: there is no guessing. Both are
	// needed for {timestamp} and refused without it: what is not signed proves no
	// age.
	TimestampHeader string
	TimestampUnit   time.Duration

	// IDHeader holds the id of the message. It is signed only if {id} is in the
	// template; if not, whoever has seen one delivery can send it again under
	// another id.
	IDHeader string

	// ID, Type, Key, Version and OccurredAt are where the body, which is JSON then,
	// says so: JSON pointers (RFC 6901) such as "/data/id". OccurredAt is RFC 3339,
	// or seconds since 1970. ID is for providers without IDHeader.
	ID, Type, Key, Version, OccurredAt string

	// TypeHeader holds the type. Like any header it is not signed.
	TypeHeader string

	// ContentTypes are those of the bodies. Defaults to application/json.
	ContentTypes []string
}

// HMAC is the preset of a provider as cfg describes it.
//
// Signed: what the template says. Where {id} or {timestamp} is not in it, the id or
// the age of a request proves nothing.
//
// Stable: all of the body.
func HMAC(cfg HMACConfig) Preset {
	cfg = cfg.withDefaults()
	s := &generic{cfg: cfg}
	traits := traits{
		name: cfg.Name, signature: http.CanonicalHeaderKey(cfg.Header), types: cfg.ContentTypes, maxBody: 1 << 20,
	}
	for _, name := range []string{cfg.IDHeader, cfg.TypeHeader, cfg.TimestampHeader} {
		if name != "" {
			traits.headers = append(traits.headers, strings.ToLower(name))
		}
	}
	if cfg.TimestampHeader != "" {
		traits.tolerance = 5 * time.Minute
	}
	err := errors.Join(cfg.validate(), checkSecrets(cfg.Secrets, s.add), s.compile())
	return Preset{scheme: s, traits: traits, err: err}
}

type generic struct {
	cfg   HMACConfig
	parts []part
	keys  []key
	paths paths
}

func (c HMACConfig) withDefaults() HMACConfig {
	for _, f := range []struct {
		field *string
		value string
	}{
		{&c.Name, "hmac"},
		{(*string)(&c.KeyForm), string(Text)},
		{(*string)(&c.Algorithm), string(SHA256)},
		{(*string)(&c.Encoding), string(Hex)},
		{&c.Template, "{body}"},
	} {
		if *f.field == "" {
			*f.field = f.value
		}
	}
	if len(c.ContentTypes) == 0 {
		c.ContentTypes = []string{"application/json"}
	}
	c.Secrets, c.ContentTypes = slices.Clone(c.Secrets), slices.Clone(c.ContentTypes)
	for _, name := range []*string{&c.Header, &c.TimestampHeader, &c.IDHeader, &c.TypeHeader} {
		*name = http.CanonicalHeaderKey(*name)
	}
	return c
}

func (c HMACConfig) validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Header == "" {
		refuse("Header is empty; it must name the header of the signature")
	}
	if c.Algorithm.hash() == nil {
		refuse("Algorithm is %q; it must be %s, %s or %s", c.Algorithm, SHA256, SHA512, SHA1)
	}
	if c.Encoding == Text || c.Encoding.bytes("") == nil {
		refuse("Encoding is %q; it must be %s, %s or %s", c.Encoding, Hex, Base64, Base64URL)
	}
	if c.KeyForm.bytes("") == nil {
		refuse("KeyForm is %q; it must be %s, %s, %s or %s", c.KeyForm, Text, Hex, Base64, Base64URL)
	}
	if c.IDHeader != "" && c.ID != "" {
		refuse("IDHeader is %q and ID %q; the id is in one of them", c.IDHeader, c.ID)
	}
	if c.IDHeader == "" && c.ID == "" {
		refuse("IDHeader and ID are empty; one of them must say where the id is")
	}
	if c.TypeHeader != "" && c.Type != "" {
		refuse("TypeHeader is %q and Type %q; the type is in one of them", c.TypeHeader, c.Type)
	}
	signsTime := strings.Contains(c.Template, "{timestamp}")
	if (c.TimestampHeader != "") != signsTime {
		refuse("TimestampHeader is %q and Template %q; a time that is not signed proves no age, and {timestamp} needs its header", c.TimestampHeader, c.Template)
	}
	if signsTime && c.TimestampUnit != time.Second && c.TimestampUnit != time.Millisecond {
		refuse("TimestampUnit is %s; it must be time.Second or time.Millisecond", c.TimestampUnit)
	}
	if strings.Contains(c.Template, "{id}") && c.IDHeader == "" {
		refuse("Template has {id}; it needs IDHeader")
	}
	if strings.Contains(c.Template, "{url}") != (c.URL != "") {
		refuse("URL is %q and Template %q; {url} and URL need each other", c.URL, c.Template)
	}
	return errors.Join(errs...)
}

// add takes a secret in.
func (s *generic) add(secret string) error {
	raw := s.cfg.KeyForm.bytes(secret)
	if len(raw) == 0 {
		return fmt.Errorf("is no %s", s.cfg.KeyForm)
	}
	s.keys = append(s.keys, key{raw, s.cfg.Algorithm.hash()})
	return nil
}

// compile reads the template and the pointers.
func (s *generic) compile() (err error) {
	if s.parts, err = parseTemplate(s.cfg.Template); err != nil {
		return err
	}
	s.paths, err = parsePaths(s.cfg)
	return err
}

func (s *generic) verify(h http.Header, body []byte) (signed time.Time, err error) {
	line, err := oneLine(h, s.cfg.Header)
	if err != nil {
		return signed, err
	}
	texts, err := split(line, s.cfg.Separator)
	if err != nil {
		return signed, err
	}
	var signatures [][]byte
	for _, text := range texts {
		if encoded, ok := strings.CutPrefix(text, s.cfg.Prefix); ok {
			signatures = append(signatures, s.cfg.Encoding.bytes(encoded))
		}
	}
	if s.cfg.TimestampHeader != "" {
		at, err := oneLine(h, s.cfg.TimestampHeader)
		if err != nil {
			return signed, err
		}
		if signed, err = unix(at, s.cfg.TimestampUnit); err != nil {
			return signed, err
		}
	}
	parts, err := s.fill(h, body)
	if err != nil {
		return signed, err
	}
	return signed, anyOf(s.keys, signatures, parts...)
}

func (s *generic) sign(h http.Header, body []byte, at time.Time) error {
	switch s.cfg.TimestampUnit {
	case time.Second:
		h.Set(s.cfg.TimestampHeader, strconv.FormatInt(at.Unix(), 10))
	case time.Millisecond:
		h.Set(s.cfg.TimestampHeader, strconv.FormatInt(at.UnixMilli(), 10))
	}
	parts, err := s.fill(h, body)
	if err != nil {
		return fmt.Errorf("set its %s first, once: %w", s.cfg.IDHeader, err)
	}
	h.Set(s.cfg.Header, s.cfg.Prefix+s.cfg.Encoding.text(s.keys[0].sum(parts...)))
	return nil
}

func (s *generic) read(h http.Header, body []byte) event {
	found := s.paths.read(body)
	if s.cfg.IDHeader != "" {
		found.id = h.Get(s.cfg.IDHeader)
	}
	if s.cfg.TypeHeader != "" {
		found.kind = h.Get(s.cfg.TypeHeader)
	}
	return found
}

func (*generic) stable(payload []byte) []byte { return whole(payload) }
