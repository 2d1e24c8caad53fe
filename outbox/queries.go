package outbox

import (
	_ "embed"

	"github.com/semel-go/semel/schema"
)

// relayQueries are the statements of a relay.
type relayQueries struct {
	sequence, horizon, read, scan, load, blocked, mark, remove, free, unnoted, fail string
	announce, members, bury, leave, renew, acquire, release                         string
}

var (
	//go:embed queries/sequence.sql
	sequenceSQL string
	//go:embed queries/horizon.sql
	horizonSQL string
	//go:embed queries/scan.sql
	scanSQL string
	//go:embed queries/load.sql
	loadSQL string
	//go:embed queries/blocked.sql
	blockedSQL string
	//go:embed queries/mark.sql
	markSQL string
	//go:embed queries/remove.sql
	removeSQL string
	//go:embed queries/free.sql
	freeSQL string
	//go:embed queries/unnoted.sql
	unnotedSQL string
	//go:embed queries/fail.sql
	failSQL string
	//go:embed queries/announce.sql
	announceSQL string
	//go:embed queries/members.sql
	membersSQL string
	//go:embed queries/bury.sql
	burySQL string
	//go:embed queries/leave.sql
	leaveSQL string
	//go:embed queries/renew.sql
	renewSQL string
	//go:embed queries/release.sql
	releaseSQL string
)

func newRelayQueries(schemaName string) *relayQueries {
	q := func(sql string) string { return schema.Qualify(sql, schemaName) }
	return &relayQueries{
		sequence: q(sequenceSQL), horizon: q(horizonSQL), read: q(readSQL), scan: q(scanSQL), load: q(loadSQL), blocked: q(blockedSQL),
		mark: q(markSQL), remove: q(removeSQL), free: q(freeSQL), unnoted: q(unnotedSQL), fail: q(failSQL),
		announce: q(announceSQL), members: q(membersSQL), bury: q(burySQL), leave: q(leaveSQL),
		renew: q(renewSQL), acquire: q(acquireSQL), release: q(releaseSQL),
	}
}
