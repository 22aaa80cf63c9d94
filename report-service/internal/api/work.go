package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A WorkbenchStore keeps what officials see of reports and do to them.
type WorkbenchStore interface {
	Queue(ctx context.Context, f report.Filter, after *report.Cursor, limit int) (report.Queue, error)
	Counts(ctx context.Context, f report.Filter) (report.Counts, error)
	Waiting(ctx context.Context) (report.Waiting, error)
	Details(ctx context.Context, id uuid.UUID) (report.TaskDetails, error)
	Assign(ctx context.Context, id uuid.UUID, a report.Assignment, by report.Official) error
	AddNote(ctx context.Context, id uuid.UUID, text string, by report.Official) error
	BeginBulkMove(ctx context.Context, m report.BulkMove, idempotent *report.Idempotent) (id int64, earlier report.StoredResponse, err error)
	EndBulkMove(ctx context.Context, id int64, refused []uuid.UUID, idempotent *report.Idempotent) error
	BulkMoves(ctx context.Context, limit int) ([]report.BulkMove, error)
	CountOverTime(ctx context.Context, f report.Filter, interval report.Interval) ([]report.PeriodCounts, error)
	CountOpen(ctx context.Context, f report.Filter, by report.PartOf) (map[int32]int64, error)
	CountByPart(ctx context.Context, f report.Filter, by report.PartOf) (total report.PartCounts, parts []report.PartCounts, err error)
	Templates(ctx context.Context) ([]report.Template, error)
	SetTemplates(ctx context.Context, templates []report.Template) error
	Views(ctx context.Context, official string) ([]report.QueueView, error)
	SetViews(ctx context.Context, official string, views []report.QueueView) error
	Departments(ctx context.Context) ([]report.Department, error)
	SetDepartments(ctx context.Context, departments []report.Department, by report.Official) error
	SettingChanges(ctx context.Context, limit int) ([]report.SettingChange, error)
}

// A DuplicateStore keeps which reports are about the same problem.
type DuplicateStore interface {
	Set(ctx context.Context, id, original uuid.UUID, by report.Official) error
}

type workbenchHandlers struct {
	workbench  WorkbenchStore
	duplicates DuplicateStore
	reports    ReportStore
	areas      AreaStore
	gates      gates
}

func (h workbenchHandlers) operations() operations {
	return operations{
		"listQueue":       {Handler: h.listQueue, Timeout: service.DefaultTimeout},
		"countQueue":      {Handler: h.countQueue, Timeout: service.DefaultTimeout},
		"countWaiting":    {Handler: h.countWaiting, Timeout: service.DefaultTimeout},
		"getWork":         {Handler: h.getWork, Timeout: service.DefaultTimeout},
		"assignReport":    {Handler: h.assignReport, Timeout: service.DefaultTimeout},
		"keepResolved":    {Handler: h.keepResolved, Timeout: changeTimeout},
		"addNote":         {Handler: h.addNote, Timeout: service.DefaultTimeout},
		"moveReports":     {Handler: h.moveReports, Timeout: changeTimeout},
		"listBulkMoves":   {Handler: h.listBulkMoves, Timeout: service.DefaultTimeout},
		"setDuplicate":    {Handler: h.setDuplicate, Timeout: service.DefaultTimeout},
		"unsetDuplicate":  {Handler: h.unsetDuplicate, Timeout: service.DefaultTimeout},
		"listTemplates":   {Handler: h.listTemplates, Timeout: service.DefaultTimeout},
		"setTemplates":    {Handler: h.setTemplates, Timeout: service.DefaultTimeout},
		"listViews":       {Handler: h.listViews, Timeout: service.DefaultTimeout},
		"setViews":        {Handler: h.setViews, Timeout: service.DefaultTimeout},
		"exportReports":   {Handler: h.exportReports, Timeout: service.Unlimited}, // as long as the client reads
		"countOverTime":   {Handler: h.countOverTime, Timeout: service.DefaultTimeout},
		"listDepartments": {Handler: h.listDepartments, Timeout: service.DefaultTimeout},
		"setDepartments":  {Handler: h.setDepartments, Timeout: service.DefaultTimeout},
		"auditSettings":   {Handler: h.auditSettings, Timeout: service.DefaultTimeout},
	}
}

// getWork handles GET /reports/{id}/work.
func (h workbenchHandlers) getWork(w http.ResponseWriter, r *http.Request) error {
	work, err := h.workbench.Details(r.Context(), pathID(r))
	if err != nil {
		return err
	}
	out := reportapi.Work{Report: taskOf(work.Task), Acts: make([]reportapi.Act, len(work.Acts)), Duplicates: work.Duplicates}
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
	out.Application = work.Application
	if in := work.Intake; in != nil {
		out.Intake = reportapi.Intake{Source: reportapi.Source(in.Source), EnteredBy: personOf(&in.By), Caller: in.Caller}
	}
	if work.Verdict != nil {
		out.Verdict = new(verdictOf(*work.Verdict))
	}
	for _, d := range work.Disputes {
		out.Disputes = append(out.Disputes, reportapi.DuplicateVerdict{ReportID: d.ReportID, Verdict: verdictOf(d.Verdict)})
	}
	return service.Encode(w, http.StatusOK, out)
}

// assignReport handles PUT /reports/{id}/assignment.
func (h workbenchHandlers) assignReport(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.Assignment](r)
	if err != nil {
		return err
	}
	assignment := report.Assignment{Department: req.DepartmentID}
	if req.Assignee.ID != "" {
		assignment.Assignee = &report.Official{ID: req.Assignee.ID, Name: req.Assignee.Name}
	}
	if err := h.workbench.Assign(r.Context(), pathID(r), assignment, caller(r).AsOfficial()); err != nil {
		return err
	}
	return h.getWork(w, r)
}

// addNote handles POST /reports/{id}/notes.
func (h workbenchHandlers) addNote(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.InternalNote](r)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(req.Text)
	if text == "" {
		return fault.NewInvalid("/text", "must not be blank")
	}
	if err := h.workbench.AddNote(r.Context(), pathID(r), text, caller(r).AsOfficial()); err != nil {
		return err
	}
	return h.getWork(w, r)
}

// setDuplicate handles PUT /reports/{id}/duplicate-of.
func (h workbenchHandlers) setDuplicate(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.DuplicateOf](r)
	if err != nil {
		return err
	}
	if req.Original == uuid.Nil {
		return fault.NewInvalid("/original", "there is no such report")
	}
	if err := h.duplicates.Set(r.Context(), pathID(r), req.Original, caller(r).AsOfficial()); err != nil {
		return err
	}
	return h.getWork(w, r)
}

// unsetDuplicate handles DELETE /reports/{id}/duplicate-of.
func (h workbenchHandlers) unsetDuplicate(w http.ResponseWriter, r *http.Request) error {
	if err := h.duplicates.Set(r.Context(), pathID(r), uuid.Nil, caller(r).AsOfficial()); err != nil {
		return err
	}
	return h.getWork(w, r)
}

// listTemplates handles GET /reports/templates.
func (h workbenchHandlers) listTemplates(w http.ResponseWriter, r *http.Request) error {
	templates, err := h.workbench.Templates(r.Context())
	if err != nil {
		return err
	}
	out := reportapi.Templates{Templates: make([]reportapi.Template, len(templates))}
	for i, t := range templates {
		out.Templates[i] = reportapi.Template{ID: t.ID, Title: t.Title, Text: t.Text, Status: reportapi.Status(t.Status)}
	}
	return service.Encode(w, http.StatusOK, out)
}

// setTemplates handles PUT /reports/templates.
func (h workbenchHandlers) setTemplates(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.Templates](r)
	if err != nil {
		return err
	}
	templates := make([]report.Template, len(req.Templates))
	given := make(map[int32]bool)
	for i, t := range req.Templates {
		if given[t.ID] {
			return fault.NewInvalid(fmt.Sprintf("/templates/%d/id", i), "must not be in another template")
		}
		given[t.ID] = true
		templates[i] = report.Template{ID: t.ID, Title: t.Title, Text: strings.TrimSpace(t.Text), Status: report.Status(t.Status)}
	}
	if err := h.workbench.SetTemplates(r.Context(), templates); err != nil {
		return err
	}
	return h.listTemplates(w, r)
}

// listViews handles GET /reports/views.
func (h workbenchHandlers) listViews(w http.ResponseWriter, r *http.Request) error {
	views, err := h.workbench.Views(r.Context(), caller(r).ID)
	if err != nil {
		return err
	}
	out := reportapi.Views{Views: make([]reportapi.View, len(views))}
	for i, v := range views {
		out.Views[i] = reportapi.View{Name: v.Name, Filters: v.Filters}
	}
	return service.Encode(w, http.StatusOK, out)
}

// setViews handles PUT /reports/views.
func (h workbenchHandlers) setViews(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.Views](r)
	if err != nil {
		return err
	}
	views := make([]report.QueueView, len(req.Views))
	given := make(map[string]bool)
	for i, v := range req.Views {
		v.Name = strings.TrimSpace(v.Name)
		pointer := fmt.Sprintf("/views/%d/name", i)
		if v.Name == "" {
			return fault.NewInvalid(pointer, "must not be blank")
		}
		if given[v.Name] {
			return fault.NewInvalid(pointer, "must not be the name of another view")
		}
		given[v.Name] = true
		views[i] = report.QueueView{Name: v.Name, Filters: v.Filters}
	}
	if err := h.workbench.SetViews(r.Context(), caller(r).ID, views); err != nil {
		return err
	}
	return h.listViews(w, r)
}

// listDepartments handles GET /reports/departments.
func (h workbenchHandlers) listDepartments(w http.ResponseWriter, r *http.Request) error {
	departments, err := h.workbench.Departments(r.Context())
	if err != nil {
		return err
	}
	out := reportapi.Departments{Departments: make([]reportapi.Department, len(departments))}
	for i, d := range departments {
		out.Departments[i] = reportapi.Department{ID: d.ID, Name: d.Name, CategoryIds: d.Categories, Routes: make([]reportapi.AreaRoute, len(d.Routes))}
		for j, route := range d.Routes {
			out.Departments[i].Routes[j] = reportapi.AreaRoute{Area: route.Area, CategoryID: route.Category}
		}
	}
	return service.Encode(w, http.StatusOK, out)
}

// auditSettings handles GET /admin/reports/settings/audit.
func (h workbenchHandlers) auditSettings(w http.ResponseWriter, r *http.Request) error {
	limit, err := intParam(r, "limit")
	if err != nil {
		return err
	}
	changes, err := h.workbench.SettingChanges(r.Context(), limit)
	if err != nil {
		return err
	}
	out := reportapi.SettingsAudit{Acts: make([]reportapi.SettingsAuditEntry, len(changes))}
	for i, c := range changes {
		out.Acts[i] = reportapi.SettingsAuditEntry{
			At: c.At, Actor: c.By.ID, ActorName: c.By.Name, Setting: reportapi.SettingsAuditEntrySetting(c.Setting), Detail: c.Detail,
		}
	}
	return service.Encode(w, http.StatusOK, out)
}

// setDepartments handles PUT /reports/departments.
func (h workbenchHandlers) setDepartments(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.Departments](r)
	if err != nil {
		return err
	}
	departments := make([]report.Department, len(req.Departments))
	for i, d := range req.Departments {
		departments[i] = report.Department{ID: d.ID, Name: strings.TrimSpace(d.Name), Categories: d.CategoryIds}
		for _, route := range d.Routes {
			departments[i].Routes = append(departments[i].Routes, report.Route{Area: route.Area, Category: route.CategoryID})
		}
	}
	if err := report.CheckDepartments(departments); err != nil {
		return err
	}
	if err := h.workbench.SetDepartments(r.Context(), departments, caller(r).AsOfficial()); err != nil {
		return err
	}
	return h.listDepartments(w, r)
}
