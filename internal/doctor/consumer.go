package doctor

import (
	"time"

	"github.com/semel-go/semel/dedup"
)

// Consumer is a consumer as far as it is known.
type Consumer struct {
	Name     string
	Noted    bool           // it has started with a version that notes its settings
	Settings dedup.Settings // what it noted
	Err      error          // what it noted cannot be read

	// Retention is how long it remembers what it handled: what it noted, or what
	// is to be supposed. Negative is for ever, zero unknown.
	Retention time.Duration
}

// Consumers are those that have noted their settings or could have, or only the
// one of a name, which need not be registered yet. A retention other than zero is
// supposed instead of what they noted.
func Consumers(noted []dedup.ConsumerSettings, only string, retention time.Duration) []Consumer {
	var all []Consumer
	for _, n := range noted {
		if only == "" || n.Consumer == only {
			all = append(all, Consumer{Name: n.Consumer, Noted: !n.NotedAt.IsZero() || n.Settings != dedup.Settings{}, Settings: n.Settings, Err: n.Err, Retention: n.Settings.Retention})
		}
	}
	if only != "" && len(all) == 0 {
		all = []Consumer{{Name: only}}
	}
	if retention != 0 {
		for i := range all {
			all[i].Retention = retention
		}
	}
	return all
}

// Settings reports the consumers of which most checks can tell nothing.
func Settings(consumers []Consumer) []Finding {
	var findings []Finding
	for _, c := range consumers {
		switch {
		case c.Err != nil:
			findings = append(findings, Finding{
				Check: "settings", Consumer: c.Name, Level: NotChecked, Failed: true,
				Found: c.Err.Error(),
				Why:   "its retries, pool and purge are not known",
				Do:    "start it again: it notes how it is configured; for its retention alone give -retention",
			})
		case !c.Noted:
			findings = append(findings, Finding{
				Check: "settings", Consumer: c.Name, Level: NotChecked,
				Found: "it has not started with this version, which notes how it is configured",
				Why:   "its retries, pool and purge are not known",
				Do:    "start it, with the rights that semel migrate grants prints; for its retention alone give -retention",
			})
		}
	}
	if len(consumers) == 0 {
		findings = append(findings, Finding{
			Check: "settings", Level: NotChecked,
			Found: "no consumer is registered",
			Why:   "there is nothing to compare a broker with",
			Do:    "start one, or name one with -consumer and give its -retention",
		})
	}
	return findings
}
