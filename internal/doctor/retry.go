package doctor

import "fmt"

const retryCheck = "retries"

// Retries compares what consumers remember with their own paths by which a message
// comes again.
func Retries(consumers []Consumer) []Finding {
	var findings []Finding
	for _, c := range consumers {
		age := c.Settings.RetryMaxAge
		if c.Retention == 0 || age == 0 {
			continue // Settings says so
		}
		f := Finding{
			Check: retryCheck, Consumer: c.Name, Level: OK,
			Found: fmt.Sprintf("a message is retried for %s, the consumer remembers for %s", span(age), span(c.Retention)),
		}
		if c.Retention > 0 && (age < 0 || age >= c.Retention) {
			f.Level = Problem
			f.Why = "a copy may come as long as the first one is still being tried, and what came before it must be known until then"
			f.Do = "raise Config.Retention, or lower the maximum age of retries"
		}
		findings = append(findings, f)
	}
	return findings
}

// DeadLetters compares what consumers remember with how long they keep dead
// letters that somebody has decided. An open one keeps its record, however old.
//
// To keep them for ever is a decision; a limit past Retention is an oversight.
func DeadLetters(consumers []Consumer) []Finding {
	var findings []Finding
	for _, c := range consumers {
		age := c.Settings.DeadLetterRetention
		if c.Retention == 0 || age == 0 {
			continue
		}
		f := Finding{
			Check: "dead letters", Consumer: c.Name, Level: OK,
			Found: fmt.Sprintf("decided dead letters are kept for %s, the consumer remembers for %s", span(age), span(c.Retention)),
		}
		if c.Retention > 0 && age > c.Retention {
			f.Level = Warning
			f.Why = "a discarded message that is reopened after its record was purged runs, though nobody can tell any more whether a copy of it did"
			f.Do = "lower the retention of dead letters to Config.Retention, or look for the effect before you reopen one"
		}
		findings = append(findings, f)
	}
	return findings
}
