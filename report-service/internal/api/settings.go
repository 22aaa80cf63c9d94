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
		"listTemplates":   {Handler: h.listTemplates, Timeout: service.DefaultTimeout},
		"setTemplates":    {Handler: service.Decoded(h.setTemplates), Timeout: service.DefaultTimeout},
		"listViews":       {Handler: h.listViews, Timeout: service.DefaultTimeout},
		"setViews":        {Handler: service.Decoded(h.setViews), Timeout: service.DefaultTimeout},
		"readScope":       {Handler: h.readScope, Timeout: service.DefaultTimeout},
		"listDepartments": {Handler: h.listDepartments, Timeout: service.DefaultTimeout},
		"setDepartments":  {Handler: service.Decoded(h.setDepartments), Timeout: service.DefaultTimeout},
		"auditSettings":   {Handler: h.auditSettings, Timeout: service.DefaultTimeout},
	}
}

// listTemplates handles GET /reports/templates.
func (h Settings) listTemplates(w http.ResponseWriter, r *http.Request) error {
	templates, err := h.templates(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.Templates{Templates: templates})
}

func (h Settings) templates(ctx context.Context) ([]reportapi.Template, error) {
	templates, err := h.Desk.Templates(ctx)
	return service.Each(templates, func(t report.Template) reportapi.Template {
		return reportapi.Template{ID: t.ID, Title: t.Title, Text: t.Text, Status: reportapi.Status(t.Status)}
	}), err
}

// setTemplates handles PUT /reports/templates.
func (h Settings) setTemplates(w http.ResponseWriter, r *http.Request, req reportapi.Templates) error {
	if err := h.replaceTemplates(r.Context(), req); err != nil {
		return err
	}
	return h.listTemplates(w, r)
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
func (h Settings) listViews(w http.ResponseWriter, r *http.Request) error {
	views, err := h.Desk.Views(r.Context(), user(r).ID)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.Views{Views: service.Each(views, func(v report.QueueView) reportapi.View {
		return reportapi.View{Name: v.Name, Filters: v.Filters}
	})})
}

// setViews handles PUT /reports/views.
func (h Settings) setViews(w http.ResponseWriter, r *http.Request, req reportapi.Views) error {
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
	if err := h.Desk.SetViews(r.Context(), user(r).ID, views); err != nil {
		return err
	}
	return h.listViews(w, r)
}

// readScope handles GET /reports/me.
func (h Settings) readScope(w http.ResponseWriter, r *http.Request) error {
	departments, err := h.Desk.Departments(r.Context())
	if err != nil {
		return err
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
	return service.Encode(w, http.StatusOK, out)
}

// listDepartments handles GET /reports/departments.
func (h Settings) listDepartments(w http.ResponseWriter, r *http.Request) error {
	departments, err := h.departments(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.Departments{Departments: departments})
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
func (h Settings) auditSettings(w http.ResponseWriter, r *http.Request) error {
	changes, err := h.Desk.SettingChanges(r.Context(), intParam(r, "limit"))
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.SettingsAudit{Acts: service.Each(changes, func(c report.SettingChange) reportapi.SettingsAuditEntry {
		return reportapi.SettingsAuditEntry{
			At: c.At, Actor: c.By.ID, ActorName: c.By.Name, Setting: reportapi.SettingsAuditEntrySetting(c.Setting), Detail: c.Detail,
		}
	})})
}

// setDepartments handles PUT /reports/departments.
func (h Settings) setDepartments(w http.ResponseWriter, r *http.Request, req reportapi.NewDepartments) error {
	if err := h.replaceDepartments(r.Context(), req, user(r).AsOfficial()); err != nil {
		return err
	}
	return h.listDepartments(w, r)
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
