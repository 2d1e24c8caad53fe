package doctor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/doctor"
)

func pool(name string, workers, size int) doctor.Consumer {
	return doctor.Consumer{Name: name, Noted: true, Settings: dedup.Settings{Workers: workers, PoolSize: size}}
}

func TestServer_Pools(t *testing.T) {
	t.Parallel()

	const (
		ok, warning, problem = doctor.OK, doctor.Warning, doctor.Problem
	)
	roomy := doctor.Server{Role: "shop", Connections: 97, RoleConnections: -1, DatabaseConnections: -1}
	tests := []struct {
		name      string
		server    doctor.Server
		consumers []doctor.Consumer
		pooled    bool
		want      []doctor.Level
		found     string // in the last one
	}{
		{name: "Fits", server: roomy, consumers: []doctor.Consumer{pool("shipping", 8, 10)}, want: []doctor.Level{ok}, found: "8 workers have a pool of 10 connections"},
		{name: "Unknown", server: roomy, consumers: []doctor.Consumer{{Name: "shipping"}}, want: []doctor.Level{}},
		{name: "TooManyWorkers", server: roomy, consumers: []doctor.Consumer{pool("shipping", 9, 10)}, want: []doctor.Level{warning}, found: "9 workers share a pool of 10 connections"},
		{name: "OneConnection", server: roomy, consumers: []doctor.Consumer{pool("shipping", 1, 1)}, want: []doctor.Level{warning}, found: "1 workers share a pool of 1 connections"},
		{
			name: "NoRoom", server: roomy, consumers: []doctor.Consumer{pool("shipping", 8, 98)}, want: []doctor.Level{ok, problem},
			found: "its pool may have 98 connections; max_connections leaves 97",
		},
		{
			name: "NoRoomForTwo", server: roomy, consumers: []doctor.Consumer{pool("shipping", 8, 49)}, want: []doctor.Level{ok, warning},
			found: "max_connections leaves 97, so a second process does not fit",
		},
		{name: "BehindAPooler", server: roomy, consumers: []doctor.Consumer{pool("shipping", 8, 500), pool("billing", 8, 500)}, pooled: true, want: []doctor.Level{ok, ok}},
		{
			name: "RoleLimit", server: doctor.Server{Role: "shop", Connections: 97, RoleConnections: 9, DatabaseConnections: 50},
			consumers: []doctor.Consumer{pool("shipping", 8, 10)}, want: []doctor.Level{ok, problem}, found: "the CONNECTION LIMIT of role shop is 9",
		},
		{
			name: "DatabaseLimit", server: doctor.Server{Role: "shop", Connections: 97, RoleConnections: 50, DatabaseConnections: 9},
			consumers: []doctor.Consumer{pool("shipping", 8, 10)}, want: []doctor.Level{ok, problem}, found: "the database's CONNECTION LIMIT is 9",
		},
		{
			name: "NoRoomForAll", server: roomy, consumers: []doctor.Consumer{pool("a", 8, 40), pool("b", 8, 40), pool("c", 8, 40)}, want: []doctor.Level{ok, ok, ok, warning},
			found: "the pools of 3 consumers may have 120 connections; max_connections leaves 97",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			findings := tt.server.Pools(tt.consumers, tt.pooled)

			require.Equal(t, tt.want, levels(findings))
			if tt.found != "" {
				require.Contains(t, findings[len(findings)-1].Found, tt.found)
			}
		})
	}
}
