package doctor

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/schema"
)

//go:embed queries/purge_overdue.sql
var purgeOverdueSQL string

const purgeCheck = "purge"

// Purges looks for consumers that do not purge what they should have.
func Purges(ctx context.Context, db DB, schemaName string, consumers []Consumer) []Finding {
	sql := schema.Qualify(purgeOverdueSQL, schemaName)
	var findings []Finding
	for _, c := range consumers {
		if c.Retention == 0 {
			continue // Settings says so
		}
		f := Finding{Check: purgeCheck, Consumer: c.Name, Level: OK, Found: "it purges nothing, and remembers for ever"}
		if c.Retention < 0 {
			findings = append(findings, f)
			continue
		}
		var lately, old bool
		if err := db.QueryRow(ctx, sql, dedup.ConsumerID(c.Name), c.Retention).Scan(&lately, &old); err != nil {
			findings = append(findings, Unread(purgeCheck, "consumer "+c.Name, fmt.Errorf("look for what should have been purged: %w", err)))
			continue
		}
		f.Found = "nothing is much older than what it is to remember"
		if lately {
			f.Found = "it has purged in the last day"
		}
		if old && !lately {
			f.Level = Warning
			f.Found = fmt.Sprintf("it has not purged for a day, and there is what was handled more than %s ago", span(c.Retention+day))
			f.Why = "the table grows for ever; Process and dedup.Claim alone purge nothing, nor does a role without the right"
			f.Do = fmt.Sprintf("run what semel migrate grants prints and a consumer with Run or Work, or every night: semel inbox purge -older %s -yes", older(c.Retention))
		}
		findings = append(findings, f)
	}
	return findings
}

// older is a duration as the flag takes it.
func older(d time.Duration) string {
	if d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}
