package admin

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/schedule"
)

// AuditSchedule writes what an operator did to a schedule into the log of all
// that operators do.
func AuditSchedule(ctx context.Context, tx pgx.Tx, act schedule.Act) error {
	detail := struct {
		Schedule string `json:"schedule"`
		Period   string `json:"period,omitempty"`
		Reason   string `json:"reason,omitempty"`
	}{act.Job, act.Period, act.Reason}
	return audit.Write(ctx, tx, audit.Entry{Actor: act.Actor, Action: audit.Action(act.Action)}, detail)
}
