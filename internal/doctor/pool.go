package doctor

import "fmt"

const poolCheck = "pool"

// own are the connections that the engine needs beside its handlers.
const own = 2

// limit is how many connections a consumer may have at most, and who says so.
func (s Server) limit() (n int, by string) {
	n, by = s.Connections, "max_connections leaves"
	if s.DatabaseConnections >= 0 && s.DatabaseConnections < n {
		n, by = s.DatabaseConnections, "the database's CONNECTION LIMIT is"
	}
	if s.RoleConnections >= 0 && s.RoleConnections < n {
		n, by = s.RoleConnections, "the CONNECTION LIMIT of role "+s.Role+" is"
	}
	return n, by
}

// Pools compares the pools of consumers with their workers and with what the
// server has. Behind a pooler the server counts the pooler's connections, not
// theirs.
func (s Server) Pools(consumers []Consumer, pooled bool) []Finding {
	var findings []Finding
	limit, by := s.limit()
	sum, known := 0, 0
	for _, c := range consumers {
		if c.Settings.PoolSize < 1 {
			continue
		}
		known++
		sum += c.Settings.PoolSize
		if c.Settings.Workers > c.Settings.PoolSize-own {
			findings = append(findings, Finding{
				Check: poolCheck, Consumer: c.Name, Level: Warning,
				Found: fmt.Sprintf("%d workers share a pool of %d connections", c.Settings.Workers, c.Settings.PoolSize),
				Why:   "dead letters, retries and leases are written on the connections that handlers leave free, and wait for them",
				Do:    fmt.Sprintf("set pool_max_conns=%d in the pool's connection string, or fewer Config.Workers", c.Settings.Workers+own),
			})
		} else {
			findings = append(findings, Finding{
				Check: poolCheck, Consumer: c.Name, Level: OK,
				Found: fmt.Sprintf("%d workers have a pool of %d connections", c.Settings.Workers, c.Settings.PoolSize),
			})
		}
		if pooled {
			continue
		}
		tooMany := Finding{
			Check: poolCheck, Consumer: c.Name, Level: Problem,
			Found: fmt.Sprintf("its pool may have %d connections; %s %d", c.Settings.PoolSize, by, limit),
			Why:   "what cannot connect is an outage: the source is paused under the highest load",
			Do:    "raise that limit, or lower pool_max_conns and Config.Workers",
		}
		switch {
		case c.Settings.PoolSize > limit:
			findings = append(findings, tooMany)
		case 2*c.Settings.PoolSize > limit:
			tooMany.Level = Warning
			tooMany.Found += ", so a second process does not fit"
			tooMany.Why = "while a new version takes over two processes run, and one of them cannot connect"
			findings = append(findings, tooMany)
		}
	}
	if pooled || known < 2 || sum <= limit {
		return findings
	}
	return append(findings, Finding{
		Check: poolCheck, Level: Warning,
		Found: fmt.Sprintf("the pools of %d consumers may have %d connections; %s %d", known, sum, by, limit),
		Why:   "under the highest load some of them cannot connect, which is an outage to them",
		Do:    "raise that limit, or lower pool_max_conns; if these consumers share a pool in one process, all is well",
	})
}
