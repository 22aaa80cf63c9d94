package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// The limits of a link: a page that is loaded and sent again and again by somebody without
// reception, and far fewer things said than would bury a report.
var (
	perLink = ratelimit.Limit{Turns: 60, Period: time.Minute}
	perJob  = ratelimit.Limit{Turns: 20, Period: 24 * time.Hour}
)

// Firms are those that repair for departments.
type Firms struct {
	Store *postgres.Firms

	turns, acts *ratelimit.Limiter // by link
}

// NewFirms returns those in store.
func NewFirms(store *postgres.Firms) Firms {
	return Firms{Store: store, turns: ratelimit.New(perLink), acts: ratelimit.New(perJob)}
}

// Operations are those on firms, and those that are theirs alone.
func (h Firms) Operations() openapi.Operations {
	return openapi.Operations{
		"listFirms":  {Handler: answered(h.list), Timeout: service.DefaultTimeout},
		"setFirms":   {Handler: answeredTo(h.set), Timeout: service.DefaultTimeout},
		"sendToFirm": {Handler: service.Decoded(h.send), Timeout: changeTimeout},
		"getJob":     {Handler: answered(h.getJob), Timeout: service.DefaultTimeout},
		"updateJob":  {Handler: answeredTo(h.updateJob), Timeout: changeTimeout},
	}
}

// authenticate returns the firm with a link, for which it takes a turn. A link is looked up
// each time: one that has ended opens nothing.
func (h Firms) authenticate(ctx context.Context, token string) (report.User, error) {
	firm, err := h.Store.ByToken(ctx, report.HashKey(token))
	if err != nil {
		return report.User{}, err
	}
	return firm, h.take(h.turns, firm)
}

// take takes a turn of the link that firm has.
func (h Firms) take(turns *ratelimit.Limiter, firm report.User) error {
	job, _ := firm.Scope.Job()
	if wait := turns.Take(job.String()); wait > 0 {
		return refusedFor(wait, service.TooManyRequests, "too many requests with this link")
	}
	return nil
}

// list handles GET /reports/firms.
func (h Firms) list(r *http.Request) (reportapi.Firms, error) {
	firms, err := h.Store.Of(r.Context(), int32(intParam(r, "department_id")), user(r))
	return reportapi.Firms{Firms: service.Each(firms, func(f report.Firm) reportapi.Firm {
		return reportapi.Firm{ID: f.ID, Name: f.Name, Address: f.Address}
	})}, err
}

// set handles PUT /reports/firms.
func (h Firms) set(r *http.Request, req reportapi.NewFirms) (reportapi.Firms, error) {
	firms := service.Each(req.Firms, func(f reportapi.NewFirm) report.Firm {
		return report.Firm{ID: f.ID, Name: strings.TrimSpace(f.Name), Address: strings.TrimSpace(f.Address)}
	})
	err := report.CheckFirms(firms)
	if err == nil {
		err = h.Store.Replace(r.Context(), int32(intParam(r, "department_id")), firms, user(r))
	}
	if err != nil {
		return reportapi.Firms{}, err
	}
	return h.list(r)
}

// send handles POST /reports/{id}/firm.
func (h Firms) send(w http.ResponseWriter, r *http.Request, req reportapi.FirmForwarding) error {
	if err := h.Store.Send(r.Context(), pathID(r), req.FirmID, strings.TrimSpace(req.Text), user(r).AsOfficial()); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return service.NoContent(w)
}

// getJob handles GET /reports/job.
func (h Firms) getJob(r *http.Request) (reportapi.Job, error) {
	j, c, err := h.Store.Job(r.Context(), user(r))
	out := reportapi.Job{
		ReportID: c.ID, Number: report.Reference(c.ID), Title: c.Title, Description: c.Description, CategoryName: c.Category.Name,
		Address: c.Address, AssetName: c.Asset.Name, Photos: orEmpty(c.Photos), FirmName: j.Firm.Name, DepartmentName: j.Department.Name,
		Text: j.Text, EndsAt: j.EndsAt, Said: reportapi.JobState(j.Said), SaidText: j.SaidText,
	}
	if c.Position != nil {
		out.Latitude, out.Longitude = &c.Position.Latitude, &c.Position.Longitude
	}
	return out, err
}

// updateJob handles POST /reports/job.
func (h Firms) updateJob(r *http.Request, req reportapi.JobUpdate) (reportapi.Job, error) {
	firm := user(r)
	if err := h.take(h.acts, firm); err != nil {
		return reportapi.Job{}, err
	}
	text := strings.TrimSpace(req.Text)
	if report.JobState(req.Said) == report.JobRefused && text == "" {
		return reportapi.Job{}, fault.NewInvalid("/text", "must say why it cannot be done")
	}
	if err := h.Store.Say(r.Context(), report.JobState(req.Said), text, firm); err != nil {
		return reportapi.Job{}, err
	}
	return h.getJob(r)
}

// jobOf is what officials read of a job; nil for none.
func jobOf(j *report.Job) *reportapi.FirmJob {
	if j == nil {
		return nil
	}
	return &reportapi.FirmJob{FirmName: j.Firm.Name, SentAt: j.SentAt, EndsAt: j.EndsAt, Ended: j.Ended, Said: reportapi.JobState(j.Said), SaidText: j.SaidText}
}
