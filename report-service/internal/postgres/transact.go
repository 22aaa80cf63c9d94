package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// workTimeout bounds a transaction. It is far above what one takes, and below
// the time after which a client gives up.
const workTimeout = 10 * time.Second

// A change is what one request does to the database, in two steps, so that a
// transaction costs two round trips at most: BEGIN travels with the first
// step, and COMMIT with the second. A report's row is locked for one of them.
type change interface {
	// read queues the locks, and the queries on which the change depends.
	read(b *pgx.Batch)
	// write decides by what was read, and queues the statements. An error
	// refuses the change and leaves nothing behind.
	write(b *pgx.Batch) error
}

// run makes c in a transaction of its own, to the end even if the client has
// left: giving up half way would cost the connection, and tell nobody whether
// the change stands.
func (s *Store) run(ctx context.Context, c change) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return Translate(fmt.Errorf("acquire connection: %w", err))
	}
	defer conn.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTimeout)
	defer cancel()
	if err := transact(ctx, conn, c); err != nil {
		rollback(ctx, conn)
		return Translate(err)
	}
	return nil
}

func transact(ctx context.Context, conn *pgxpool.Conn, c change) error {
	b := &pgx.Batch{}
	b.Queue("begin")
	c.read(b)
	if b.Len() > 1 { // otherwise one round trip is enough
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		b = &pgx.Batch{}
	}
	if err := c.write(b); err != nil {
		return err
	}
	b.Queue("commit")
	return conn.SendBatch(ctx, b).Close()
}

// rollback ends the transaction, if one is open. A connection on which that
// fails is thrown away by the pool.
func rollback(ctx context.Context, conn *pgxpool.Conn) {
	if conn.Conn().PgConn().TxStatus() != 'I' {
		_, _ = conn.Exec(ctx, "rollback")
	}
}

// optional scans the only row of a query that may have none, and tells which.
func optional(found *bool, dst ...any) func(pgx.Row) error {
	return func(row pgx.Row) error {
		err := row.Scan(dst...)
		*found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	}
}

// Translate turns what Postgres says into what the client may know. SQLSTATE
// classes 08, 53 and 57, and whatever never reached the server, say that the
// database is away or overloaded; 40 and 55P03 that it was too busy.
func Translate(err error) error {
	if err == nil || report.KindOf(err) != "" || errors.Is(err, context.Canceled) {
		return err
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if isAway(err) {
			return &report.Error{Kind: report.Unavailable, Msg: "the database is away", Err: err}
		}
		return err
	}
	if pg.ConstraintName == "reports_category_fk" {
		return noCategory()
	}
	switch class := pg.Code[:2]; {
	case class == "08", class == "53", class == "57", class == "40", pg.Code == "55P03":
		return &report.Error{Kind: report.Unavailable, Msg: "the database is busy", Err: err}
	}
	return err
}

// isAway reports whether err says that the server was not reached, or the
// connection to it got lost, or the wait was too long.
func isAway(err error) bool {
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	return connect || errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || isNetwork(err)
}
