package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Management asks RabbitMQ's management API. It is safe for concurrent use.
type Management struct {
	base           string // without user and password
	user, password string
	client         *http.Client
}

// errAddress is returned for what is no address of a management API. It does not
// show it: it may hold a password.
var errAddress = errors.New("it is not like http://user:password@host:15672")

const (
	managementTimeout = 10 * time.Second
	maxAnswer         = 4 << 20 // bytes

	// limitSince is the version from which on a quorum queue has a delivery limit
	// that nobody has set.
	limitSince   = 4
	defaultLimit = 20
)

// NewManagement returns a client of the API at an address. It asks nothing yet.
// No error of it, here and later, shows the password.
func NewManagement(address string) (*Management, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errAddress
	}
	password, _ := u.User.Password()
	return &Management{
		base: u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/"),
		user: u.User.Username(), password: password,
		client: &http.Client{Timeout: managementTimeout},
	}, nil
}

// answer is what the API says of a queue.
type answer struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Arguments table  `json:"arguments"`
	Policy    *table `json:"effective_policy_definition"`
}

// table holds values by name. Empty ones come as [] at times.
type table map[string]json.RawMessage

// UnmarshalJSON implements [json.Unmarshaler].
func (t *table) UnmarshalJSON(text []byte) error {
	if string(text) == "[]" || string(text) == "null" {
		*t = table{}
		return nil
	}
	return json.Unmarshal(text, (*map[string]json.RawMessage)(t))
}

// number returns a whole number.
func (t table) number(name string) (n int64, found bool, err error) {
	text, found := t[name]
	if !found {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%s is %.40s, no whole number", name, text)
	}
	return n, true, nil
}

// Queue implements [Broker].
func (m *Management) Queue(ctx context.Context, vhost, name string) (Queue, error) {
	q, err := m.queue(ctx, vhost, name)
	if err != nil {
		return Queue{}, fmt.Errorf("ask the management API for the queue: %w", err)
	}
	return q, nil
}

func (m *Management) queue(ctx context.Context, vhost, name string) (Queue, error) {
	var a answer
	if err := m.get(ctx, "/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(name), &a); err != nil {
		return Queue{}, err
	}
	if a.Policy == nil {
		return Queue{}, errors.New("it does not tell which policies apply: that comes with the queue's first statistics, some seconds after it was declared, and never where statistics are switched off")
	}
	policy := *a.Policy
	q := Queue{Name: a.Name, Type: a.Type, TTL: forever, DeliveryLimit: -1}
	_, byArgument := a.Arguments["x-dead-letter-exchange"]
	_, byPolicy := policy["dead-letter-exchange"]
	q.DeadLetters = byArgument || byPolicy

	// Of a queue's argument and a policy the lower number counts.
	ttl, found, err := lower(a.Arguments, policy, "message-ttl")
	if err != nil {
		return Queue{}, err
	}
	if found {
		q.TTL = ofMilliseconds(ttl)
	}
	if q.Type != "quorum" {
		return q, nil // others know no limit
	}
	limit, found, err := lower(a.Arguments, policy, "delivery-limit")
	switch {
	case err != nil:
		return Queue{}, err
	case found:
		q.DeliveryLimit = limit
		return q, nil
	}
	version, err := m.version(ctx)
	if err != nil {
		return Queue{}, err
	}
	if version >= limitSince {
		q.DeliveryLimit, q.ByDefault = defaultLimit, true
	}
	return q, nil
}

// lower returns the number that counts of an argument and a policy. One that is
// negative is no limit, and the other counts.
func lower(arguments, policy table, name string) (n int64, found bool, err error) {
	argument, byArgument, err := arguments.number("x-" + name)
	if err != nil {
		return 0, false, err
	}
	defined, byPolicy, err := policy.number(name)
	switch {
	case err != nil:
		return 0, false, err
	case byArgument && byPolicy && (argument < 0 || defined < 0):
		return max(argument, defined), true, nil
	case byArgument && byPolicy:
		return min(argument, defined), true, nil
	case byArgument:
		return argument, true, nil
	}
	return defined, byPolicy, nil
}

// version returns the first number of the broker's version.
func (m *Management) version(ctx context.Context) (int, error) {
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	if err := m.get(ctx, "/api/overview", &overview); err != nil {
		return 0, err
	}
	major, _, _ := strings.Cut(overview.Version, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0, fmt.Errorf("it does not tell its version, but %.40q", overview.Version)
	}
	return n, nil
}

func (m *Management) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+path, nil)
	if err != nil {
		return errAddress
	}
	request.SetBasicAuth(m.user, m.password)
	response, err := m.client.Do(request)
	if err != nil {
		return err // it names the address, which has no password
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		var refusal struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(body, &refusal) != nil || refusal.Error == "" { // somebody else's server
			return fmt.Errorf("it answers %s, and not as RabbitMQ does", response.Status)
		}
		return ErrNoQueue
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("it refuses user %q (%s)", m.user, response.Status)
	default:
		return fmt.Errorf("it answers %s", response.Status)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	return nil
}
