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
//
// It may be made several times until it stands, each time from its first step.
type change interface {
	// scope says what no other change may touch in the same transaction.
	scope() scope
	// read queues the locks, and the queries on which the change depends.
	read(r *reads)
	// write decides by what was read, and adds the rows. An error refuses the
	// change, and nothing may have been added then.
	write(w *writes) error
}

// write makes the changes of a batch, to the end even if the clients have
// left: giving up half way would cost the connection, and tell nobody whether
// the changes stand. An error says that nothing was tried.
func (s *Store) write(ctx context.Context, b *batch) error {
	if b.patient {
		ctx = context.WithoutCancel(ctx) // the batch is others' as well
	}
	acquire, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(acquire)
	if err != nil {
		return Translate(fmt.Errorf("acquire connection: %w", err))
	}
	defer conn.Release()
	if !b.patient {
		s.group.fill(b)
	}
	s.together(context.WithoutCancel(ctx), conn, b.entries, b.patient)
	return nil
}

// together makes changes in one transaction. If one of them breaks it, it
// makes each half in its own, until the one that breaks it is alone.
func (s *Store) together(ctx context.Context, conn *pgxpool.Conn, entries []*entry, patient bool) {
	err := s.transact(ctx, conn, entries, patient)
	if err == nil {
		return
	}
	if len(entries) > 1 && isUndone(err) {
		half := len(entries) / 2
		s.together(ctx, conn, entries[:half], patient)
		s.together(ctx, conn, entries[half:], patient)
		return
	}
	for _, e := range entries {
		e.err = Translate(err)
	}
}

// isUndone reports whether err says for certain that the transaction did not
// happen, and that the server would take another.
func isUndone(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.SeverityUnlocalized == "ERROR"
}

// transact makes changes in one transaction and sets the outcome of each. An
// error says that the transaction failed, whatever was set.
func (s *Store) transact(ctx context.Context, conn *pgxpool.Conn, entries []*entry, patient bool) error {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	defer rollback(ctx, conn)
	r := newReads(patient)
	for _, e := range entries {
		e.change.read(r)
	}
	b := &r.batch
	if b.Len() > 1 { // otherwise one round trip is enough
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		b = &pgx.Batch{}
	}
	w := &writes{}
	for _, e := range entries {
		if e.locked = r.missed(e.scope.subject); !e.locked {
			e.err = e.change.write(w)
		}
	}
	if w.empty() {
		return nil
	}
	w.queue(b)
	b.Queue("commit")
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if len(w.outbox) > 0 {
		s.committed(w.shards())
	}
	return nil
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
