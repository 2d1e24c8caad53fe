package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rooms are the folders whose files the map in docs/design.md explains.
var rooms = regexp.MustCompile(`^(handler|schema|breaker|breaker/httpbreaker|dedup|dedup/calls|dlq|outbox|inbox|transports/[a-z]+|internal/jitter|internal/msgrow|internal/heapwalk|internal/purging|cmd/semel)/[^/]+\.go$`)

var (
	mapRoom = regexp.MustCompile("^### `([a-z/]+)/`")
	mapFile = regexp.MustCompile("^- `([a-z_]+\\.go)`: ")
)

// The map has one line for each file of the library, and for nothing else.
// Files of tests, package comments and plants explain themselves.
func TestDesign_FileMap(t *testing.T) {
	t.Parallel()

	var mapped []string
	room := ""
	for line := range strings.Lines(read(t, "docs/design.md")) {
		if m := mapRoom.FindStringSubmatch(line); m != nil {
			room = m[1]
		} else if m := mapFile.FindStringSubmatch(line); m != nil {
			mapped = append(mapped, room+"/"+m[1])
		}
	}
	files := goFiles(t, func(path string) bool {
		return rooms.MatchString(path) && !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, "_plant.go") && !strings.HasSuffix(path, "/doc.go")
	})
	require.ElementsMatch(t, files, mapped, "docs/design.md, section File map: one line \"- `file.go`: what it is\" for each file")
}
