package pgpool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sessionMark is a setting without a meaning, which each pool gives another value. Only
// a server whose session is ours has it.
const sessionMark = "cityconnect.session"

// errPooler is the refusal of a pooler that gives a connection now this session of the
// server and now that one. Such a one passes our settings on to none of them: a
// statement that hangs never ends, a frozen process keeps its locks, prepared statements
// meet those of others, and replicas take each other for dead, because they know one
// another by locks of their sessions.
var errPooler = errors.New("a connection pooler does not pass our settings on to the server: " +
	"the host and port must be PostgreSQL's own, or those of a proxy that keeps sessions (docs/production.md#poolers)")

// unsupported is the SQLSTATE by which PgBouncer refuses a connection with settings that
// it does not know. PostgreSQL never refuses one by it that speaks the protocol.
const unsupported = "08P01"

func newSessionMark() string { return rand.Text() }

// checkSession returns errPooler unless the server has the mark of this connection.
func checkSession(ctx context.Context, conn *pgx.Conn, mark string) error {
	var got string
	// Without preparing anything, which a pooler might keep.
	err := conn.QueryRow(ctx, `select coalesce(current_setting('`+sessionMark+`', true), '')`, pgx.QueryExecModeSimpleProtocol).Scan(&got)
	if err != nil {
		return fmt.Errorf("check the session: %w", err)
	}
	if got != mark {
		return errPooler
	}
	return nil
}

// behindPooler reports whether a connection was refused because of a pooler, by it or
// by us.
func behindPooler(err error) bool {
	if errors.Is(err, errPooler) {
		return true
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return connecting && ok && refusal.Code == unsupported
}
