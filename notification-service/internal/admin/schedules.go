package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Schedules are the jobs that are due at times.
type Schedules interface {
	List(ctx context.Context) ([]schedule.Schedule, error)
	Runs(ctx context.Context, name string, before time.Time, limit int) ([]schedule.Run, error)
	Operate(ctx context.Context, act schedule.Act) error
}

// AuditSchedule writes what an operator did to a schedule into the log of all
// that operators do.
func AuditSchedule(ctx context.Context, tx pgx.Tx, act schedule.Act) error {
	detail, err := json.Marshal(struct {
		Schedule string `json:"schedule"`
		Period   string `json:"period,omitempty"`
		Reason   string `json:"reason,omitempty"`
	}{act.Job, act.Period, act.Reason})
	if err != nil {
		return fmt.Errorf("encode audit: %w", err)
	}
	return audit.Write(ctx, tx, audit.Entry{Actor: act.Actor, Action: string(act.Action), Detail: detail})
}

// ScheduleOperations are those about schedules.
func ScheduleOperations(s Schedules) openapi.Operations {
	operate := func(action schedule.Action) service.Operation {
		return service.Operation{Handler: func(w http.ResponseWriter, r *http.Request) error { return operateSchedule(s, action, w, r) }, Timeout: service.DefaultTimeout}
	}
	return openapi.Operations{
		"listSchedules":    service.Operation{Handler: func(w http.ResponseWriter, r *http.Request) error { return listSchedules(s, w, r) }, Timeout: service.DefaultTimeout},
		"listScheduleRuns": service.Operation{Handler: func(w http.ResponseWriter, r *http.Request) error { return listScheduleRuns(s, w, r) }, Timeout: service.DefaultTimeout},
		"pauseSchedule":    operate(schedule.Pause),
		"resumeSchedule":   operate(schedule.Resume),
		"runSchedule":      operate(schedule.RunAgain),
	}
}

// listSchedules handles GET /admin/notifications/schedules.
func listSchedules(s Schedules, w http.ResponseWriter, r *http.Request) error {
	list, err := s.List(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, api.ScheduleList{Schedules: each(list, scheduleOf)})
}

// listScheduleRuns handles GET /admin/notifications/schedules/{name}/runs.
func listScheduleRuns(s Schedules, w http.ResponseWriter, r *http.Request) error {
	limit, cursor, err := page(r)
	if err != nil {
		return err
	}
	var before time.Time
	if cursor != 0 {
		before = time.UnixMicro(cursor)
	}
	runs, err := s.Runs(r.Context(), r.PathValue("name"), before, limit)
	if err != nil {
		return err
	}
	now := time.Now()
	out := api.ScheduleRunPage{Runs: each(runs, func(run schedule.Run) api.ScheduleRun { return scheduleRunOf(run, now) })}
	if len(runs) == limit {
		out.NextCursor = strconv.FormatInt(runs[limit-1].Due.UnixMicro(), 10)
		service.NextLink(w, r, out.NextCursor)
	}
	return service.Encode(w, http.StatusOK, out)
}

// operateSchedule handles POST /admin/notifications/schedules/{name}/pause, resume
// and run.
func operateSchedule(s Schedules, action schedule.Action, w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[api.ScheduleAct](r)
	if err != nil {
		return err
	}
	err = s.Operate(r.Context(), schedule.Act{
		Actor: actor(r), Action: action, Job: r.PathValue("name"), Period: request.Period, Reason: request.Reason,
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func scheduleOf(s schedule.Schedule) api.Schedule {
	view := api.Schedule{
		Name: s.Name, Times: s.Spec, CatchUp: s.CatchUp, NextAt: s.NextAt, Paused: s.Paused, Overruns: s.Overruns(),
	}
	if s.Latest != nil {
		view.Latest = scheduleRunOf(*s.Latest, s.Now)
	}
	return view
}

func scheduleRunOf(r schedule.Run, now time.Time) api.ScheduleRun {
	return api.ScheduleRun{
		Period: r.Period, State: api.ScheduleRunState(r.State), DueAt: r.Due, Done: r.Done, Total: r.Total,
		Failures: int32(r.Failures), Error: r.Error, Times: int32(r.Times),
		StartedAt: valueOf(r.StartedAt), EndedAt: valueOf(r.EndedAt), EndsAt: valueOf(r.Ends(now)),
	}
}
