package as2

import (
	"errors"
	"fmt"
	"strings"
)

// maxName is the longest AS2 name in characters (RFC 4130, section 6.2).
const maxName = 128

// parseName reads the value of AS2-From or AS2-To. A name with spaces, quotes or
// backslashes stands in quotes; one without may. Names differ by case.
func parseName(value string) (string, error) {
	value = strings.Trim(value, " \t")
	if value == "" {
		return "", errors.New("it is empty or missing")
	}
	name, err := value, error(nil)
	if value[0] == '"' {
		name, err = unquote(value)
	} else if strings.ContainsAny(value, ` "\`) {
		err = errors.New("a name with spaces, quotes or backslashes must be in quotes")
	}
	switch {
	case err != nil:
		return "", err
	case name == "" || len(name) > maxName:
		return "", fmt.Errorf("a name has 1 to %d characters, not %d", maxName, len(name))
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", errors.New("a name is of printable ASCII characters")
	}
	return name, nil
}

// unquote reads a quoted name, in which a backslash stands before a quote or
// another backslash.
func unquote(value string) (string, error) {
	var name strings.Builder
	for i := 1; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"' && i == len(value)-1:
			return name.String(), nil
		case c == '"':
			return "", fmt.Errorf("there is something behind the closing quote, at character %d", i+2)
		case c == '\\' && i+1 < len(value) && (value[i+1] == '"' || value[i+1] == '\\'):
			i++
			name.WriteByte(value[i])
		case c == '\\':
			return "", fmt.Errorf("the backslash at character %d is before neither a quote nor a backslash", i+1)
		default:
			name.WriteByte(c)
		}
	}
	return "", errors.New("the closing quote is missing")
}

// FormatName is how a name stands in a header.
func FormatName(name string) string {
	if !strings.ContainsAny(name, ` "\`) {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}
