package main

import (
	"os"
	"os/user"

	"github.com/semel-go/semel/dlq"
)

// byFlag adds the flag that says who decides.
func (c *call) byFlag() *string {
	return c.flags.String("by", "", "`name` of who decides, to be noted (default: your login and this host)")
}

// who is the name that is noted for a decision.
func (c *call) who(by string) (string, error) {
	if by == "" {
		return login(), nil
	}
	if dlq.CheckOwner(by) != nil {
		return "", c.usage("-by %.80q: a name is text without control characters, of at most %d bytes", by, dlq.MaxOwnerBytes)
	}
	return by, nil
}

// login is who runs the program, and where; "" if nobody can tell.
func login() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err == nil && name != "" {
		name += "@" + host
	}
	if dlq.CheckOwner(name) != nil {
		return ""
	}
	return name
}
