// Package postgres keeps reports, votes and their history, and the outbox
// rows that announce each change.
//
// It promises that a change and its announcement are one transaction: neither
// can exist without the other. A change takes the lock on the report's row
// before its outbox row is numbered, so that within a report the order of the
// outbox is the order of the commits.
//
// Each subject has a type of its own: Reports, Comments, Photos and so on. All
// of them change reports through the DB that they share.
package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A DB is the reports database.
type DB struct {
	pool      *pgxpool.Pool
	keys      *event.Keyring // seals recipients; secrets of other uses derive from it
	hashKeys  [][]byte       // of idempotency keys, the current one first
	committer *committer
	city      *settings.City
	ends      chan struct{} // holds a value while duplicates may have to follow their original
	rules     Rules
	figures   keptFigures
	assets    assetReader
}

// Rules are those of the city. A part of the service that files, asks and resolves nothing
// needs none.
type Rules struct {
	Resolutions  report.Resolutions
	QuestionDays int  // working days that a reporter has for an answer
	GuestReports int  // of each guest within report.GuestDay
	Desk         bool // officials work for departments alone
}

// NewDB returns the database behind pool. The keyring seals the recipient of
// each announcement, and hashes idempotency keys. After a commit that wrote
// outbox rows, committed is called with their shards, to wake the relay; it must
// not block.
func NewDB(pool *pgxpool.Pool, keys *event.Keyring, committed func(shards.Set), rules Rules) *DB {
	return &DB{
		pool: pool, keys: keys, rules: rules, city: settings.New(pool), assets: assetReader{pool: pool},
		hashKeys:  keys.Derive("cityconnect/report-service/idempotency-keys"),
		committer: newCommitter(pool, keys, rules.Desk, committed),
		ends:      make(chan struct{}, 1),
	}
}

// City returns the settings that changes of reports go by.
func (db *DB) City() *settings.City { return db.city }

// A Workbench is the officials' side of reports, which residents do not see.
type Workbench struct{ db *DB }

// NewWorkbench returns the workbench on db.
func NewWorkbench(db *DB) *Workbench { return &Workbench{db} }

// Run writes the changes of Reports and Comments that residents wait for. It
// returns once ctx has ended and those that it has taken are written, so it has
// to end after the requests that it serves.
func (db *DB) Run(ctx context.Context) error { return db.committer.Run(ctx) }

// change changes a report, hidden or not, in a transaction of its own: it locks
// the report, waiting for the lock, calls decide, writes the rows that decide
// added, commits, and wakes the relay. Every change that does not go through
// the committer goes through here, so that none of these steps can be
// forgotten. The report has what report.May needs of whoever acts within the scope.
func (db *DB) change(ctx context.Context, id uuid.UUID, scope report.Scope, decide func(tx pgx.Tx, l *lockedReport, w *writeBatch) error) error {
	return db.transaction(ctx, func(tx pgx.Tx, w *writeBatch) error {
		l, err := lockReport(ctx, tx, id, scope)
		if err != nil {
			return err
		}
		return decide(tx, l, w)
	})
}

// act is change for what an official does, if they may.
func (db *DB) act(ctx context.Context, id uuid.UUID, by report.Official, a report.Action, decide func(tx pgx.Tx, l *lockedReport, w *writeBatch) error) error {
	return db.change(ctx, id, by.Scope, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		if err := report.May(by.User(), a, &l.Filing); err != nil {
			return err
		}
		return decide(tx, l, w)
	})
}

// may returns what report.May says of a report that is not locked.
func (db *DB) may(ctx context.Context, u report.User, a report.Action, id uuid.UUID) error {
	var f report.Filing
	err := db.pool.QueryRow(ctx, `
		select `+hiddenReasonSQL+`, r.visibility, coalesce(p.reporter_id, ''), `+departmentSQL+`
		from reports r left join reporters p on p.report_id = r.id where r.id = $1`, id).
		Scan(&f.HiddenReason, &f.Visibility, &f.Reporter.ID, &f.Department)
	if err = pgpool.Found(err, "select whose report it is", report.ErrNotFound); err != nil {
		return err
	}
	return report.May(u, a, &f)
}

// transaction is change for decisions that find and lock their reports
// themselves.
func (db *DB) transaction(ctx context.Context, decide func(tx pgx.Tx, w *writeBatch) error) error {
	w := db.newWrites()
	err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if err := decide(tx, w); err != nil {
			return err
		}
		return w.send(ctx, tx)
	})
	if err == nil {
		w.wake(db.committer.committed)
	}
	return err
}

// newWrites returns an empty batch for a transaction that the caller commits:
// the caller sends the batch before, and wakes the relay afterwards.
func (db *DB) newWrites() *writeBatch { return &writeBatch{keys: db.keys, desk: db.rules.Desk} }

// lockReport locks the row of a report, hidden or not, and waits for it. See readBatch.lock.
func lockReport(ctx context.Context, tx pgx.Tx, id uuid.UUID, scope report.Scope) (*lockedReport, error) {
	r := newReadBatch(true)
	l := r.lock(id, scope)
	var b pgx.Batch
	r.queue(&b)
	if err := send(ctx, tx, "lock report", &b); err != nil {
		return nil, err
	}
	if !l.found {
		return nil, report.ErrNotFound
	}
	return l, nil
}

// send writes the rows in a transaction that was begun elsewhere.
func (w *writeBatch) send(ctx context.Context, tx pgx.Tx) error {
	var b pgx.Batch
	w.queue(&b)
	return send(ctx, tx, "write changes", &b)
}

// send sends a batch unless it is empty; what describes it in errors.
func send(ctx context.Context, to interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}, what string, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if err := to.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// wake calls committed with the shards that have messages. The transaction must
// be committed.
func (w *writeBatch) wake(committed func(shards.Set)) {
	var written shards.Set
	for _, r := range w.outbox {
		written = written.Add(r.shard)
	}
	if written != 0 {
		committed(written)
	}
}
