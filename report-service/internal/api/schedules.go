package api

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
)

// auditSchedules handles GET /admin/reports/schedules/audit.
func auditSchedules(audit func(ctx context.Context, limit int) ([]schedule.Act, error)) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		limit, err := intParam(r, "limit")
		if err != nil {
			return err
		}
		entries, err := audit(r.Context(), limit)
		if err != nil {
			return err
		}
		out := reportapi.ScheduleAudit{Acts: make([]reportapi.ScheduleAuditEntry, len(entries))}
		for i, e := range entries {
			out.Acts[i] = reportapi.ScheduleAuditEntry{
				At: e.At, Actor: e.Actor, Action: string(e.Action), Schedule: e.Job, Period: e.Period, Reason: e.Reason,
			}
		}
		return service.Encode(w, http.StatusOK, out)
	}
}
