// Package upkeep is what operators need of the reports database: it removes old data and
// erased people, says what is held about a person, and starts over after a restore.
package upkeep

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
)

const (
	// versionsPerRestore is by how much the versions of all reports rise with a
	// restore: more than the changes of any report.
	versionsPerRestore = 1_000_000
	// startOverRows is how many reports get a new version in one statement.
	startOverRows = 1000
)

// A Store does the upkeep of a database.
type Store struct {
	pool *pgxpool.Pool
	keys *event.Keyring // opens and seals recipients; secrets of other uses derive from it
	db   *postgres.DB
}

// New returns the upkeep of db, which is behind pool.
func New(pool *pgxpool.Pool, keys *event.Keyring, db *postgres.DB) *Store {
	return &Store{pool, keys, db}
}

// StartOver raises the versions of all reports above those that were lost. So
// no version that a client has seen is used again for another state: what
// clients show is older than every new version, and their changes with If-Match
// fail until they have read the report again.
func (s *Store) StartOver(ctx context.Context, restores int) error {
	for after := uuid.Nil; ; {
		var found int
		var last *uuid.UUID
		err := s.pool.QueryRow(ctx, `
			with places as materialized (
				select id from reports where id > $1 order by id limit $2
			), raised as (
				update reports r set version = r.version % $4 + $3
				from places p where r.id = p.id and r.version < $3
			)
			select count(*), (select id from places order by id desc limit 1) from places`,
			after, startOverRows, int64(restores)*versionsPerRestore, int64(versionsPerRestore)).Scan(&found, &last)
		if err != nil {
			return fmt.Errorf("raise versions: %w", err)
		}
		if found < startOverRows {
			return nil
		}
		after = *last
	}
}

// AuditSchedule records an operator's act on a schedule.
func (s *Store) AuditSchedule(ctx context.Context, tx pgx.Tx, act schedule.Act) error {
	return pgpool.Exec(ctx, tx, "write audit", `
		insert into schedule_audit (actor, action, schedule, period, reason) values ($1, $2, $3, $4, $5)`,
		act.Actor, act.Action, act.Job, act.Period, act.Reason)
}

// ScheduleAudit returns the operators' acts on schedules, the latest first.
func (s *Store) ScheduleAudit(ctx context.Context, limit int) ([]schedule.Act, error) {
	return pgpool.Collect(ctx, s.pool, "read audit", func(row pgx.CollectableRow) (a schedule.Act, err error) {
		err = row.Scan(&a.At, &a.Actor, &a.Action, &a.Job, &a.Period, &a.Reason)
		a.At = a.At.UTC()
		return a, err
	}, `
		select at, actor, action, schedule, period, reason from schedule_audit order by id desc limit $1`, limit)
}
