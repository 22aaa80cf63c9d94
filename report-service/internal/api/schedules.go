package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
)

type scheduleHandlers struct {
	schedules *schedule.Scheduler
	audit     func(ctx context.Context, limit int) ([]schedule.Act, error)
}

func (h scheduleHandlers) operations() operations {
	return operations{
		"listSchedules":    {h.listSchedules, service.DefaultTimeout},
		"listScheduleRuns": {h.listScheduleRuns, service.DefaultTimeout},
		"pauseSchedule":    {h.operateSchedule(schedule.Pause), service.DefaultTimeout},
		"resumeSchedule":   {h.operateSchedule(schedule.Resume), service.DefaultTimeout},
		"runSchedule":      {h.operateSchedule(schedule.RunAgain), service.DefaultTimeout},
		"auditSchedules":   {h.auditSchedules, service.DefaultTimeout},
	}
}

// listSchedules handles GET /admin/reports/schedules.
func (h scheduleHandlers) listSchedules(w http.ResponseWriter, r *http.Request) error {
	list, err := h.schedules.List(r.Context())
	if err != nil {
		return err
	}
	out := ScheduleList{Schedules: make([]Schedule, len(list))}
	for i, l := range list {
		out.Schedules[i] = Schedule{
			Name: l.Name, Times: l.Spec, CatchUp: l.CatchUp, NextAt: l.NextAt, Paused: l.Paused, Overruns: l.Overruns(),
		}
		if l.Latest != nil {
			out.Schedules[i].Latest = scheduleRunOf(*l.Latest, l.Now)
		}
	}
	return service.Encode(w, http.StatusOK, out)
}

// listScheduleRuns handles GET /admin/reports/schedules/{name}/runs.
func (h scheduleHandlers) listScheduleRuns(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit, err := intParam(r, "limit")
	if err != nil {
		return err
	}
	var before time.Time
	if query.Has("cursor") {
		due, err := strconv.ParseInt(query.Get("cursor"), 10, 64)
		if err != nil {
			return invalid("cursor", err)
		}
		before = time.UnixMicro(due)
	}
	runs, err := h.schedules.Runs(r.Context(), r.PathValue("name"), before, limit)
	if err != nil {
		return err
	}
	now := time.Now()
	out := ScheduleRunPage{Runs: make([]ScheduleRun, len(runs))}
	for i, run := range runs {
		out.Runs[i] = scheduleRunOf(run, now)
	}
	if len(runs) == limit {
		out.NextCursor = strconv.FormatInt(runs[limit-1].Due.UnixMicro(), 10)
		service.NextLink(w, r, out.NextCursor)
	}
	return service.Encode(w, http.StatusOK, out)
}

// operateSchedule handles POST /admin/reports/schedules/{name}/pause, resume and
// run.
func (h scheduleHandlers) operateSchedule(action schedule.Action) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		req, err := service.Decode[ScheduleAct](r)
		if err != nil {
			return err
		}
		err = h.schedules.Operate(r.Context(), schedule.Act{
			Actor: caller(r).ID, Action: action, Job: r.PathValue("name"), Period: req.Period, Reason: req.Reason,
		})
		if err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// auditSchedules handles GET /admin/reports/schedules/audit.
func (h scheduleHandlers) auditSchedules(w http.ResponseWriter, r *http.Request) error {
	limit, err := intParam(r, "limit")
	if err != nil {
		return err
	}
	entries, err := h.audit(r.Context(), limit)
	if err != nil {
		return err
	}
	out := ScheduleAudit{Acts: make([]ScheduleAuditEntry, len(entries))}
	for i, e := range entries {
		out.Acts[i] = ScheduleAuditEntry{
			At: e.At, Actor: e.Actor, Action: string(e.Action), Schedule: e.Job, Period: e.Period, Reason: e.Reason,
		}
	}
	return service.Encode(w, http.StatusOK, out)
}

func scheduleRunOf(r schedule.Run, now time.Time) ScheduleRun {
	return ScheduleRun{
		Period: r.Period, State: ScheduleRunState(r.State), DueAt: r.Due, Done: r.Done, Total: r.Total,
		Failures: int32(r.Failures), Error: r.Error, Times: int32(r.Times),
		StartedAt: orZero(r.StartedAt), EndedAt: orZero(r.EndedAt), EndsAt: orZero(r.Ends(now)),
	}
}
