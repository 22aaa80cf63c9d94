package api

import (
	"net/http"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

// ScheduleAudit are operators' acts on schedules.
type ScheduleAudit struct{ Upkeep *upkeep.Store }

// Operations are those on the acts.
func (h ScheduleAudit) Operations() openapi.Operations {
	return openapi.Operations{"auditSchedules": {Handler: answered(h.list), Timeout: service.DefaultTimeout}}
}

// list handles GET /admin/reports/schedules/audit.
func (h ScheduleAudit) list(r *http.Request) (reportapi.ScheduleAudit, error) {
	acts, err := h.Upkeep.ScheduleAudit(r.Context(), intParam(r, "limit"))
	return reportapi.ScheduleAudit{Acts: service.Each(acts, func(a schedule.Act) reportapi.ScheduleAuditEntry {
		return reportapi.ScheduleAuditEntry{
			At: a.At, Actor: a.Actor, Action: string(a.Action), Schedule: a.Job, Period: a.Period, Reason: a.Reason,
		}
	})}, err
}
