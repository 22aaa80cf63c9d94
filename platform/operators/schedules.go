package operators

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Schedules are the jobs that are due at times; schedule.Scheduler is one.
type Schedules interface {
	List(ctx context.Context) ([]schedule.Schedule, error)
	Runs(ctx context.Context, name string, before time.Time, limit int) ([]schedule.Run, error)
	Operate(ctx context.Context, act schedule.Act) error
}

// ScheduleOperations are those on schedules.
func ScheduleOperations(s Schedules) openapi.Operations {
	h := schedules{s}
	return openapi.Operations{
		"listSchedules":    timed(h.list),
		"listScheduleRuns": timed(h.runs),
		"pauseSchedule":    timed(h.operate(schedule.Pause)),
		"resumeSchedule":   timed(h.operate(schedule.Resume)),
		"runSchedule":      timed(h.operate(schedule.RunAgain)),
	}
}

type schedules struct{ of Schedules }

// list handles GET /admin/…/schedules.
func (h schedules) list(w http.ResponseWriter, r *http.Request) error {
	list, err := h.of.List(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, scheduleList{service.Each(list, scheduleOf)})
}

// runs handles GET /admin/…/schedules/{name}/runs.
func (h schedules) runs(w http.ResponseWriter, r *http.Request) error {
	var before time.Time
	if cursor := service.Number(r.URL.Query().Get("cursor")); cursor != 0 {
		before = time.UnixMicro(cursor)
	}
	runs, err := h.of.Runs(r.Context(), r.PathValue("name"), before, limit(r))
	if err != nil {
		return err
	}
	now := time.Now()
	page := runPage{Runs: service.Each(runs, func(r schedule.Run) run { return runOf(r, now) })}
	if n := len(runs); n > 0 && n == limit(r) {
		page.NextCursor = strconv.FormatInt(runs[n-1].Due.UnixMicro(), 10)
		service.NextLink(w, r, page.NextCursor)
	}
	return service.Encode(w, http.StatusOK, page)
}

// operate handles POST /admin/…/schedules/{name}/pause, resume and run.
func (h schedules) operate(action schedule.Action) service.HandlerFunc {
	return service.Decoded(func(w http.ResponseWriter, r *http.Request, request scheduleAct) error {
		err := h.of.Operate(r.Context(), schedule.Act{
			Actor: auth.Must(r).ID, Action: action, Job: r.PathValue("name"), Period: request.Period, Reason: request.Reason,
		})
		if err != nil {
			return err
		}
		return service.NoContent(w)
	})
}

type scheduleList struct {
	Schedules []scheduleView `json:"schedules"`
}

type scheduleView struct {
	Name     string    `json:"name"`
	Times    string    `json:"times"`
	CatchUp  string    `json:"catch_up"`
	NextAt   time.Time `json:"next_at"`
	Paused   bool      `json:"paused"`
	Overruns bool      `json:"overruns"`
	Latest   *run      `json:"latest,omitempty"`
}

type run struct {
	Period    string         `json:"period"`
	State     schedule.State `json:"state"`
	DueAt     time.Time      `json:"due_at"`
	Done      int64          `json:"done"`
	Total     int64          `json:"total"`
	Failures  int            `json:"failures"`
	Times     int            `json:"times"`
	Error     string         `json:"error,omitempty"`
	StartedAt time.Time      `json:"started_at,omitzero"`
	EndedAt   time.Time      `json:"ended_at,omitzero"`
	EndsAt    time.Time      `json:"ends_at,omitzero"`
}

type runPage struct {
	Runs       []run  `json:"runs"`
	NextCursor string `json:"next_cursor,omitempty"`
}

type scheduleAct struct {
	Period string `json:"period"`
	Reason string `json:"reason"`
}

func scheduleOf(s schedule.Schedule) scheduleView {
	view := scheduleView{Name: s.Name, Times: s.Spec, CatchUp: s.CatchUp, NextAt: s.NextAt, Paused: s.Paused, Overruns: s.Overruns()}
	if s.Latest != nil {
		view.Latest = new(runOf(*s.Latest, s.Now))
	}
	return view
}

func runOf(r schedule.Run, now time.Time) run {
	return run{
		Period: r.Period, State: r.State, DueAt: r.Due, Done: r.Done, Total: r.Total, Failures: r.Failures, Times: r.Times, Error: r.Error,
		StartedAt: service.OrZero(r.StartedAt), EndedAt: service.OrZero(r.EndedAt), EndsAt: service.OrZero(r.Ends(now)),
	}
}
