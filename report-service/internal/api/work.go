package api

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Work is what officials do about a report.
type Work struct {
	Workbench  *postgres.Workbench
	Duplicates *postgres.Duplicates
}

// Operations are those on the work on a report.
func (h Work) Operations() openapi.Operations {
	return openapi.Operations{
		"getWork":        {Handler: answered(h.getWork), Timeout: service.DefaultTimeout},
		"assignReport":   {Handler: answeredTo(h.assignReport), Timeout: service.DefaultTimeout},
		"forwardReport":  {Handler: service.Decoded(h.forwardReport), Timeout: service.DefaultTimeout},
		"addNote":        {Handler: answeredTo(h.addNote), Timeout: service.DefaultTimeout},
		"setDuplicate":   {Handler: answeredTo(h.setDuplicate), Timeout: service.DefaultTimeout},
		"unsetDuplicate": {Handler: answered(h.unsetDuplicate), Timeout: service.DefaultTimeout},
	}
}

// getWork handles GET /reports/{id}/work.
func (h Work) getWork(r *http.Request) (reportapi.Work, error) {
	work, err := h.Workbench.Details(r.Context(), pathID(r), user(r))
	if err != nil {
		return reportapi.Work{}, err
	}
	out := reportapi.Work{Report: taskOf(work.Task), Acts: make([]reportapi.Act, len(work.Acts)), Duplicates: orEmpty(work.Duplicates), Disputes: make([]reportapi.DuplicateVerdict, len(work.Disputes))}
	for i, a := range work.Acts {
		out.Acts[i] = reportapi.Act{
			At: a.At, By: personOf(&a.By), Action: reportapi.ActAction(a.Kind), Text: a.Text,
			Status: reportapi.Status(a.Status), Assignee: personOf(a.Assignee),
		}
		if a.Original != nil {
			out.Acts[i].DuplicateOf = *a.Original
		}
		if a.Department != nil {
			out.Acts[i].DepartmentID, out.Acts[i].DepartmentName = a.Department.ID, a.Department.Name
		}
	}
	out.Application, out.ImportedNumber = work.Application, work.Imported
	if in := work.Intake; in != nil {
		out.Intake = reportapi.Intake{Source: reportapi.Source(in.Source), EnteredBy: personOf(&in.By), Caller: in.Caller}
	}
	out.Job = jobOf(work.Job)
	if work.Verdict != nil {
		out.Verdict = new(verdictOf(*work.Verdict))
	}
	for i, d := range work.Disputes {
		out.Disputes[i] = reportapi.DuplicateVerdict{ReportID: d.ReportID, Verdict: verdictOf(d.Verdict)}
	}
	return out, nil
}

// after returns the work on the report as a change has left it, unless err ended the change.
func (h Work) after(r *http.Request, err error) (reportapi.Work, error) {
	if err != nil {
		return reportapi.Work{}, err
	}
	return h.getWork(r)
}

// assignReport handles PUT /reports/{id}/assignment.
func (h Work) assignReport(r *http.Request, req reportapi.Assignment) (reportapi.Work, error) {
	assignment := report.Assignment{Department: req.DepartmentID}
	if req.Assignee.ID != "" {
		assignment.Assignee = &report.Official{ID: req.Assignee.ID, Name: req.Assignee.Name}
	}
	return h.after(r, h.Workbench.Assign(r.Context(), pathID(r), assignment, user(r).AsOfficial()))
}

// forwardReport handles POST /reports/{id}/forward.
func (h Work) forwardReport(w http.ResponseWriter, r *http.Request, req reportapi.Forwarding) error {
	reason := strings.TrimSpace(req.Reason)
	if reason == "" {
		return fault.NewInvalid("/reason", "must not be blank")
	}
	if err := h.Workbench.Forward(r.Context(), pathID(r), req.DepartmentID, reason, user(r).AsOfficial()); err != nil {
		return err
	}
	return service.NoContent(w)
}

// addNote handles POST /reports/{id}/notes.
func (h Work) addNote(r *http.Request, req reportapi.InternalNote) (reportapi.Work, error) {
	text := strings.TrimSpace(req.Text)
	if text == "" {
		return reportapi.Work{}, fault.NewInvalid("/text", "must not be blank")
	}
	return h.after(r, h.Workbench.AddNote(r.Context(), pathID(r), text, user(r).AsOfficial()))
}

// setDuplicate handles PUT /reports/{id}/duplicate-of.
func (h Work) setDuplicate(r *http.Request, req reportapi.DuplicateOf) (reportapi.Work, error) {
	if req.Original == uuid.Nil {
		return reportapi.Work{}, fault.NewInvalid("/original", "there is no such report")
	}
	return h.after(r, h.Duplicates.Set(r.Context(), pathID(r), req.Original, user(r).AsOfficial()))
}

// unsetDuplicate handles DELETE /reports/{id}/duplicate-of.
func (h Work) unsetDuplicate(r *http.Request) (reportapi.Work, error) {
	return h.after(r, h.Duplicates.Set(r.Context(), pathID(r), uuid.Nil, user(r).AsOfficial()))
}
