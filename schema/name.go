package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// Default is the name of the schema that holds the tables unless another is
// configured.
const Default = "semel"

// maxName is PostgreSQL's limit; it cuts longer names silently, so that two
// schemas could become one.
const maxName = 63

// ErrName is returned for a schema name that PostgreSQL cannot hold.
var ErrName = errors.New("impossible schema name")

// CheckName reports whether name can be the name of a schema, with an error
// that wraps [ErrName]. Empty means [Default].
func CheckName(name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("%w %.80q: %d bytes, PostgreSQL allows %d", ErrName, name, len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w %q: not UTF-8", ErrName, name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w %q: it holds a control character", ErrName, name)
	case strings.HasPrefix(name, "pg_"):
		return fmt.Errorf("%w %q: PostgreSQL keeps the prefix pg_ for itself", ErrName, name)
	}
	return nil
}

// tokens finds what [Qualify] must tell apart: literals, comments and quoted
// names, which stay as they are, and the schema in front of a name.
var tokens = regexp.MustCompile(`'(?:[^']|'')*'|--[^\n]*|"(?:[^"]|"")*"|\bsemel\.`)

// Qualify returns sql with every "semel." in it replaced by the quoted
// schemaName, outside of literals and comments. Empty means [Default]. It is
// called once for each query, when the store that runs it is built.
func Qualify(sql, schemaName string) string {
	prefix := quote(schemaName) + "."
	return tokens.ReplaceAllStringFunc(sql, func(token string) string {
		if token == "semel." {
			return prefix
		}
		return token
	})
}

// quote returns the identifier of a schema name.
func quote(schemaName string) string {
	return pgx.Identifier{orDefault(schemaName)}.Sanitize()
}

func orDefault(schemaName string) string {
	if schemaName == "" {
		return Default
	}
	return schemaName
}
