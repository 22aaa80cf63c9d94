// Package restore detects that a database was restored from a backup, or takes an
// operator's word for it, and does what that requires before the service goes on.
//
// A restore reverts data that clients have seen: numbers that they know come again
// and mean something else. Each service makes its clients start over in its own way.
// The package promises that it is done once for each restore, to its end, and
// before anything is written that depends on it.
//
// A database that pg_restore filled, or that is in another cluster, is noticed.
// One that was recovered to a point in time, copied back as files, or promoted
// without its last transactions, is not: say so with Declare.
package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Watch is over one database.
type Watch struct {
	pool *pgxpool.Pool
	// startOver does the service's steps for the restore with that number. It may be
	// called again for the same number, also by several replicas at once.
	startOver func(ctx context.Context, restores int) error
	log       zerolog.Logger
	passed    chan struct{} // closed once the database was looked at
}

// New returns a Watch over the database behind pool.
func New(pool *pgxpool.Pool, startOver func(ctx context.Context, restores int) error, log zerolog.Logger) *Watch {
	return &Watch{pool: pool, startOver: startOver, log: log, passed: make(chan struct{})}
}

// Await checks the database, until that has succeeded or ctx ends. It returns
// nil when the service may go on.
func (w *Watch) Await(ctx context.Context) error {
	delays := backoff.Backoff{First: time.Second, Max: 2 * time.Second}
	for {
		_, err := w.check(ctx, false)
		if err == nil {
			close(w.passed)
			return nil
		}
		if ctx.Err() == nil {
			w.log.Warn().Str("error", pgpool.LogText(err)).Msg("checking whether the database was restored failed, will retry before anything is written")
		}
		if err := backoff.Sleep(ctx, delays.Next()); err != nil {
			return err
		}
	}
}

// Probe returns nil once the database was looked at.
func (w *Watch) Probe(context.Context) error {
	select {
	case <-w.passed:
		return nil
	default:
		return errors.New("it is not known yet whether the database was restored")
	}
}

// Declare does the steps for a restore. No replica of the service may run.
func (w *Watch) Declare(ctx context.Context) (restores int, err error) { return w.check(ctx, true) }

func (w *Watch) check(ctx context.Context, declared bool) (restores int, err error) {
	var restoring bool
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		now, err := origin(ctx, tx)
		if err != nil {
			return err
		}
		err = pgpool.Exec(ctx, tx, "note which database this is", `insert into database_origin (origin) values ($1) on conflict do nothing`, now)
		if err != nil {
			return err
		}
		var before string
		err = tx.QueryRow(ctx, `select origin, restores, restoring from database_origin for update`).Scan(&before, &restores, &restoring)
		if err != nil {
			return fmt.Errorf("read which database this is: %w", err)
		}
		if restoring || !declared && before == now {
			return nil // one that broke off goes on
		}
		restoring = true
		restores++
		return pgpool.Exec(ctx, tx, "note a restore", `update database_origin set origin = $1, restores = $2, restoring = true`, now, restores)
	})
	if err != nil || !restoring {
		return restores, err
	}
	w.log.Info().Int("restore", restores).Msg("the database was restored, clients will start over")
	if err := w.startOver(ctx, restores); err != nil {
		return restores, err
	}
	return restores, pgpool.Exec(ctx, w.pool, "note the end of a restore", `update database_origin set restoring = false where restores = $1`, restores)
}

// insufficientPrivilege is the SQLSTATE of what the role may not do.
const insufficientPrivilege = "42501"

// origin identifies a database by cluster, database and table, of which a restored
// copy has at least one of its own. A managed server may hide the cluster.
func origin(ctx context.Context, tx pgx.Tx) (string, error) {
	cluster := "unknown"
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
		return tx.QueryRow(ctx, `select system_identifier::text from pg_control_system()`).Scan(&cluster)
	})
	if refused, ok := errors.AsType[*pgconn.PgError](err); err != nil && (!ok || refused.Code != insufficientPrivilege) {
		return "", fmt.Errorf("read the cluster's identity: %w", err)
	}
	rest, err := pgpool.Value[string](ctx, tx, "read the database's identity", `
		select format('%s.%s', (select oid from pg_database where datname = current_database()), 'database_origin'::regclass::oid)`)
	if err != nil {
		return "", err
	}
	return cluster + "." + rest, nil
}
