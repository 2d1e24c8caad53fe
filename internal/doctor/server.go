package doctor

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed queries/server.sql
var serverSQL string

//go:embed queries/commit_settings.sql
var commitSettingsSQL string

//go:embed queries/vacuum_off.sql
var vacuumOffSQL string

// Server is what of a server and a session the promise depends on.
type Server struct {
	Role              string // that asks
	SynchronousCommit string
	Fsync             bool
	FullPageWrites    bool
	Autovacuum        bool

	// Connections are how many the server has for ordinary roles; of them the
	// role and the database may have so many. Negative: all.
	Connections         int
	RoleConnections     int
	DatabaseConnections int

	// CommitOff are the commands that have switched synchronous_commit off for
	// who may run a consumer. VacuumOff are our tables that nobody vacuums.
	CommitOff, VacuumOff []string
}

// ReadServer looks at a server with the tables in a schema.
func ReadServer(ctx context.Context, db DB, schemaName string) (Server, error) {
	var s Server
	err := db.QueryRow(ctx, serverSQL).Scan(&s.Role, &s.SynchronousCommit, &s.Fsync, &s.FullPageWrites, &s.Autovacuum,
		&s.Connections, &s.RoleConnections, &s.DatabaseConnections)
	if err == nil {
		s.CommitOff, err = texts(ctx, db, commitSettingsSQL, schemaName)
	}
	if err == nil {
		s.VacuumOff, err = texts(ctx, db, vacuumOffSQL, schemaName)
	}
	if err != nil {
		return Server{}, fmt.Errorf("read the settings of the server: %w", err)
	}
	return s, nil
}

func texts(ctx context.Context, db DB, sql string, args ...any) ([]string, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

const (
	durabilityCheck = "durability"
	vacuumCheck     = "vacuum"
)

// Durability tells whether what is committed stays.
func (s Server) Durability() []Finding {
	var findings []Finding
	add := func(level Level, found, why, do string) {
		findings = append(findings, Finding{Check: durabilityCheck, Level: level, Found: found, Why: why, Do: do})
	}
	const lost = "a crash of the server loses what was committed in the last moments, and its messages are acknowledged by then"
	if s.SynchronousCommit == "off" {
		add(Problem, "synchronous_commit is off on this connection", lost, fmt.Sprintf("ALTER ROLE %s SET synchronous_commit = on, or take it out of the connection string", pgx.Identifier{s.Role}.Sanitize()))
	}
	for _, command := range s.CommitOff {
		add(Problem, command+" has set synchronous_commit to off", lost, command+" RESET synchronous_commit")
	}
	if !s.Fsync {
		add(Problem, "fsync is off", "a crash of the machine can lose everything, not only the last moments", "set fsync = on in postgresql.conf")
	}
	if !s.FullPageWrites {
		add(Warning, "full_page_writes is off", "a page that a crash has half written stays broken, unless the file system writes it whole", "set full_page_writes = on in postgresql.conf")
	}
	if len(findings) == 0 {
		add(OK, "what is committed is on the server's disk", "", "")
	}
	return findings
}

// Vacuum tells whether dead rows are cleared away.
func (s Server) Vacuum() []Finding {
	var findings []Finding
	add := func(table, found, do string) {
		findings = append(findings, Finding{
			Check: vacuumCheck, Object: table, Level: Warning, Found: found,
			Why: "what was purged or published stays on disk, and each look at a queue reads past it", Do: do,
		})
	}
	if !s.Autovacuum {
		add("", "autovacuum or track_counts is off", "set both to on in postgresql.conf")
	}
	for _, table := range s.VacuumOff {
		add(table, "autovacuum_enabled is off", "ALTER TABLE "+table+" RESET (autovacuum_enabled)")
	}
	if len(findings) == 0 {
		return []Finding{{Check: vacuumCheck, Level: OK, Found: "the tables are vacuumed by themselves"}}
	}
	return findings
}
