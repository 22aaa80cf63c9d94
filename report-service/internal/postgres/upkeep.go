package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/schedule"
)

// Upkeep is what operators do to the database, and what they did to its
// schedules.
type Upkeep struct{ db *DB }

// NewUpkeep returns the upkeep of db.
func NewUpkeep(db *DB) *Upkeep { return &Upkeep{db} }

// AuditSchedule writes what an operator did to a schedule.
func (s *Upkeep) AuditSchedule(ctx context.Context, tx pgx.Tx, act schedule.Act) error {
	_, err := tx.Exec(ctx, `
		insert into schedule_audit (actor, action, schedule, period, reason) values ($1, $2, $3, $4, $5)`,
		act.Actor, act.Action, act.Job, act.Period, act.Reason)
	if err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	return nil
}

// ScheduleAudit returns what operators did to schedules, the latest first.
func (s *Upkeep) ScheduleAudit(ctx context.Context, limit int) ([]schedule.Act, error) {
	return collect(ctx, s.db.pool, "read audit", func(row pgx.CollectableRow) (a schedule.Act, err error) {
		err = row.Scan(&a.At, &a.Actor, &a.Action, &a.Job, &a.Period, &a.Reason)
		a.At = a.At.UTC()
		return a, err
	}, `
		select at, actor, action, schedule, period, reason from schedule_audit order by id desc limit $1`, limit)
}
