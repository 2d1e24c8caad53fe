//go:build !linux

package database

import (
	"context"
	"errors"
)

// Supervise reports that this process is no supervisor: there are none here.
func Supervise() bool { return false }

func start(context.Context, func(string)) (*Server, error) {
	return nil, errors.New("an embedded PostgreSQL is started on Linux only: set DATABASE_URL to one that runs, for example postgres://user:password@localhost:5432/postgres")
}
