//go:build plant_assume_committed

package inbox

import "github.com/semel-go/semel/handler"

// doubt is the planted bug "assume-committed": what was not answered is taken
// for done.
func doubt(*task, error) verdict {
	return verdict{kind: settled, outcome: handler.Processed}
}
