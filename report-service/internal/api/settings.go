package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// Settings are those of the officials' work: texts, views of the queue, departments.
type Settings struct{ Desk *settings.Desk }

// Operations are those on the settings.
func (h Settings) Operations() openapi.Operations {
	return openapi.Operations{
		"listTemplates":   {Handler: answered(h.listTemplates), Timeout: service.DefaultTimeout},
		"setTemplates":    {Handler: answeredTo(h.setTemplates), Timeout: service.DefaultTimeout},
		"listViews":       {Handler: answered(h.listViews), Timeout: service.DefaultTimeout},
		"setViews":        {Handler: answeredTo(h.setViews), Timeout: service.DefaultTimeout},
		"readScope":       {Handler: answered(h.readScope), Timeout: service.DefaultTimeout},
		"listDepartments": {Handler: answered(h.listDepartments), Timeout: service.DefaultTimeout},
		"setDepartments":  {Handler: answeredTo(h.setDepartments), Timeout: service.DefaultTimeout},
		"auditSettings":   {Handler: answered(h.auditSettings), Timeout: service.DefaultTimeout},
	}
}

// listTemplates handles GET /reports/templates.
func (h Settings) listTemplates(r *http.Request) (reportapi.Templates, error) {
	templates, err := h.templates(r.Context())
	return reportapi.Templates{Templates: templates}, err
}

func (h Settings) templates(ctx context.Context) ([]reportapi.Template, error) {
	templates, err := h.Desk.Templates(ctx)
	return service.Each(templates, func(t report.Template) reportapi.Template {
		return reportapi.Template{ID: t.ID, Title: t.Title, Text: t.Text, Status: reportapi.Status(t.Status)}
	}), err
}

// setTemplates handles PUT /reports/templates.
func (h Settings) setTemplates(r *http.Request, req reportapi.Templates) (reportapi.Templates, error) {
	if err := h.replaceTemplates(r.Context(), req); err != nil {
		return reportapi.Templates{}, err
	}
	return h.listTemplates(r)
}

func (h Settings) replaceTemplates(ctx context.Context, req reportapi.Templates) error {
	templates := make([]report.Template, len(req.Templates))
	given := make(map[int32]bool)
	for i, t := range req.Templates {
		if given[t.ID] {
			return fault.NewInvalid(fmt.Sprintf("/templates/%d/id", i), "must not be in another template")
		}
		given[t.ID] = true
		templates[i] = report.Template{ID: t.ID, Title: t.Title, Text: strings.TrimSpace(t.Text), Status: report.Status(t.Status)}
	}
	return h.Desk.SetTemplates(ctx, templates)
}

// listViews handles GET /reports/views.
func (h Settings) listViews(r *http.Request) (reportapi.Views, error) {
	views, err := h.Desk.Views(r.Context(), user(r).ID)
	return reportapi.Views{Views: service.Each(views, func(v report.QueueView) reportapi.View {
		return reportapi.View{Name: v.Name, Filters: v.Filters}
	})}, err
}

// setViews handles PUT /reports/views.
func (h Settings) setViews(r *http.Request, req reportapi.Views) (reportapi.Views, error) {
	views := make([]report.QueueView, len(req.Views))
	given := make(map[string]bool)
	for i, v := range req.Views {
		v.Name = strings.TrimSpace(v.Name)
		pointer := fmt.Sprintf("/views/%d/name", i)
		if v.Name == "" {
			return reportapi.Views{}, fault.NewInvalid(pointer, "must not be blank")
		}
		if given[v.Name] {
			return reportapi.Views{}, fault.NewInvalid(pointer, "must not be the name of another view")
		}
		given[v.Name] = true
		views[i] = report.QueueView{Name: v.Name, Filters: v.Filters}
	}
	if err := h.Desk.SetViews(r.Context(), user(r).ID, views); err != nil {
		return reportapi.Views{}, err
	}
	return h.listViews(r)
}

// readScope handles GET /reports/me.
func (h Settings) readScope(r *http.Request) (reportapi.OwnScope, error) {
	departments, err := h.Desk.Departments(r.Context())
	if err != nil {
		return reportapi.OwnScope{}, err
	}
	by := auth.Must(r)
	out := reportapi.OwnScope{Scope: reportapi.OwnScopeScopeCity, Moderator: !by.Limited(), Departments: []reportapi.OwnDepartment{}, Unknown: []string{}}
	if by.Limited() {
		out.Scope = reportapi.OwnScopeScopeDepartment
	}
	for _, code := range by.Departments {
		i := slices.IndexFunc(departments, func(d report.Department) bool { return d.Code == code })
		if i < 0 {
			out.Unknown = append(out.Unknown, code)
			continue
		}
		out.Departments = append(out.Departments, reportapi.OwnDepartment{ID: departments[i].ID, Code: code, Name: departments[i].Name})
	}
	slices.SortFunc(out.Departments, func(a, b reportapi.OwnDepartment) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// listDepartments handles GET /reports/departments.
func (h Settings) listDepartments(r *http.Request) (reportapi.Departments, error) {
	departments, err := h.departments(r.Context())
	return reportapi.Departments{Departments: departments}, err
}

func (h Settings) departments(ctx context.Context) ([]reportapi.Department, error) {
	departments, err := h.Desk.Departments(ctx)
	return service.Each(departments, func(d report.Department) reportapi.Department {
		return reportapi.Department{ID: d.ID, Code: d.Code, Name: d.Name, CategoryIds: d.Categories, Routes: service.Each(d.Routes, func(r report.Route) reportapi.AreaRoute {
			return reportapi.AreaRoute{Area: r.Area, CategoryID: r.Category}
		})}
	}), err
}

// auditSettings handles GET /admin/reports/settings/audit.
func (h Settings) auditSettings(r *http.Request) (reportapi.SettingsAudit, error) {
	changes, err := h.Desk.SettingChanges(r.Context(), intParam(r, "limit"))
	return reportapi.SettingsAudit{Acts: service.Each(changes, func(c report.SettingChange) reportapi.SettingsAuditEntry {
		return reportapi.SettingsAuditEntry{
			At: c.At, Actor: c.By.ID, ActorName: c.By.Name, Setting: reportapi.SettingsAuditEntrySetting(c.Setting), Detail: c.Detail,
		}
	})}, err
}

// setDepartments handles PUT /reports/departments.
func (h Settings) setDepartments(r *http.Request, req reportapi.NewDepartments) (reportapi.Departments, error) {
	if err := h.replaceDepartments(r.Context(), req, user(r).AsOfficial()); err != nil {
		return reportapi.Departments{}, err
	}
	return h.listDepartments(r)
}

func (h Settings) replaceDepartments(ctx context.Context, req reportapi.NewDepartments, by report.Official) error {
	departments := service.Each(req.Departments, func(d reportapi.NewDepartment) report.Department {
		return report.Department{ID: d.ID, Code: d.Code, Name: strings.TrimSpace(d.Name), Categories: d.CategoryIds, Routes: service.Each(d.Routes, func(r reportapi.AreaRoute) report.Route {
			return report.Route{Area: r.Area, Category: r.CategoryID}
		})}
	})
	if err := report.CheckDepartments(departments); err != nil {
		return err
	}
	return h.Desk.SetDepartments(ctx, departments, by)
}
