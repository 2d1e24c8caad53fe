package faultproxy_test

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/internal/pgtest"
)

// What CutReply is for: the server commits, the client never hears of it.
func TestProxy_CutReply_Commit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `CREATE TABLE effects (n int)`)
	require.NoError(t, err)
	config := db.Pool.Config().ConnConfig
	p := faultproxy.New(t, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))))
	config.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.Addr())
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()

	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `INSERT INTO effects VALUES (1)`)
	require.NoError(t, err)
	cut := p.CutReply(func(b []byte) bool { return bytes.Contains(b, []byte("commit")) })

	require.Error(t, tx.Commit(t.Context()))
	<-cut
	require.Eventually(t, func() bool {
		var n int
		return db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM effects`).Scan(&n) == nil && n == 1
	}, patience, time.Millisecond, "the server did not get the COMMIT")
}
