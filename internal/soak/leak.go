package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// How many messages it takes for the planted bugs to leak once more.
const (
	messagesPerLeak           = 5
	messagesPerLeakConnection = 50
)

// leak is the planted bug, if one was asked for: a goroutine with some memory,
// or a connection, that nobody ends any more.
func (c *consumer) leak(n int) {
	switch {
	case c.plant == plantLeak && n%messagesPerLeak == 0:
		go func(kept []byte) {
			time.Sleep(24 * time.Hour)
			_ = kept[0]
		}(make([]byte, 4096))
	case c.plant == plantLeakConnection && n%messagesPerLeakConnection == 0:
		conn, err := pgx.ConnectConfig(context.Background(), c.pool.Config().ConnConfig)
		if err == nil {
			go func() {
				time.Sleep(24 * time.Hour)
				_ = conn.Close(context.Background())
			}()
		}
	}
}
