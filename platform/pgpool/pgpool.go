// Package pgpool opens the pool of connections that a service has to its
// database, with limits that end what hangs on either side.
package pgpool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// defaultConns is the size of the pool unless the URL has pool_max_conns.
	// Commits spend their time waiting for the disk, so that more connections
	// than cores pay off.
	defaultConns = 20
	// connectTimeout lets requests fail in time while the server is away.
	connectTimeout = 3 * time.Second
)

// serverLimits end stuck statements on the server's side, too. They are below the
// deadlines of the services (10 s), so that the server is the one that says what
// happened. A process that is frozen in the middle of a transaction loses it: others
// need not wait for its locks, and it cannot commit the transaction when it goes on.
var serverLimits = map[string]string{
	"lock_timeout":                        "5s",
	"statement_timeout":                   "8s",
	"idle_in_transaction_session_timeout": "5s",
}

// pinned are settings that our statements rely on, whatever the server, the
// database or the role has as its default. Under another isolation requests that
// wait for one another fail, and in another encoding texts cannot be read.
var pinned = map[string]string{
	"client_encoding":               "UTF8",
	"default_transaction_isolation": "read committed",
}

// errEncoding is the refusal of a database that cannot keep every text.
var errEncoding = errors.New("the database's encoding must be UTF8: create it with `encoding 'UTF8' template template0`, and restore into that")

// Open returns a pool of connections to the database at databaseURL, which
// may override our settings. The server shows them as those of application.
// Open does not connect: the database may come up after us. A server that was away
// is connected to by few at first.
func Open(ctx context.Context, databaseURL, application string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("parse database url: %w", err)
	}
	if !strings.Contains(databaseURL, "pool_max_conns=") {
		cfg.MaxConns = defaultConns
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	settings := maps.Clone(serverLimits)
	maps.Copy(settings, pinned)
	settings["application_name"] = application
	// Our queries are short. PostgreSQL compiles them when it takes them for long
	// ones, which costs more than they do.
	settings["jit"] = "off"
	maps.Copy(settings, cfg.ConnConfig.RuntimeParams)
	mark := newSessionMark()
	settings[sessionMark] = mark
	cfg.ConnConfig.RuntimeParams = settings
	// After a failover the pool may hold connections to a server that serves reads
	// only now. Its next ones go to the new primary, by a list of hosts or by a proxy.
	onError := cfg.ConnConfig.OnPgError
	cfg.ConnConfig.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		return e.Code != readOnly && onError(conn, e)
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if encoding := conn.PgConn().ParameterStatus("server_encoding"); encoding != "UTF8" {
			return fmt.Errorf("encoding %s: %w", encoding, errEncoding)
		}
		return checkSession(ctx, conn, mark)
	}
	cfg.BeforeConnect = newConnects(cfg.MaxConns).before
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return pool, nil
}

// SignIn returns an error if the server refuses the sign-in, has no such database, or
// is behind a pooler that does not keep sessions: these are faults of DATABASE_URL,
// which waiting does not cure. A server
// that is away is none. Its text is for whoever starts the program, and may name
// the user and the database.
func SignIn(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err := pool.Ping(ctx)
	if behindPooler(err) {
		if e, ok := errors.AsType[*pgconn.PgError](err); ok { // its text names the setting
			return fmt.Errorf("DATABASE_URL: %w: %s", errPooler, e.Message)
		}
		return fmt.Errorf("DATABASE_URL: %w", errPooler)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && refusal(e.Code) != "" {
		return fmt.Errorf("DATABASE_URL: %s: %s", describePgError(e), e.Message)
	}
	return nil
}
