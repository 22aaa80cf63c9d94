package api

import (
	"fmt"
	"net/http"
	"strings"

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
		"listDepartments": {Handler: h.listDepartments, Timeout: service.DefaultTimeout},
		"setDepartments":  {Handler: service.Decoded(h.setDepartments), Timeout: service.DefaultTimeout},
		"auditSettings":   {Handler: h.auditSettings, Timeout: service.DefaultTimeout},
	}
}

// listTemplates handles GET /reports/templates.
func (h Settings) listTemplates(w http.ResponseWriter, r *http.Request) error {
	templates, err := h.Desk.Templates(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.Templates{Templates: service.Each(templates, func(t report.Template) reportapi.Template {
		return reportapi.Template{ID: t.ID, Title: t.Title, Text: t.Text, Status: reportapi.Status(t.Status)}
	})})
}

// setTemplates handles PUT /reports/templates.
func (h Settings) setTemplates(w http.ResponseWriter, r *http.Request, req reportapi.Templates) error {
	templates := make([]report.Template, len(req.Templates))
	given := make(map[int32]bool)
	for i, t := range req.Templates {
		if given[t.ID] {
			return fault.NewInvalid(fmt.Sprintf("/templates/%d/id", i), "must not be in another template")
		}
		given[t.ID] = true
		templates[i] = report.Template{ID: t.ID, Title: t.Title, Text: strings.TrimSpace(t.Text), Status: report.Status(t.Status)}
	}
	if err := h.Desk.SetTemplates(r.Context(), templates); err != nil {
		return err
	}
	return h.listTemplates(w, r)
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

// listDepartments handles GET /reports/departments.
func (h Settings) listDepartments(w http.ResponseWriter, r *http.Request) error {
	departments, err := h.Desk.Departments(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.Departments{Departments: service.Each(departments, func(d report.Department) reportapi.Department {
		return reportapi.Department{ID: d.ID, Name: d.Name, CategoryIds: d.Categories, Routes: service.Each(d.Routes, func(r report.Route) reportapi.AreaRoute {
			return reportapi.AreaRoute{Area: r.Area, CategoryID: r.Category}
		})}
	})})
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
func (h Settings) setDepartments(w http.ResponseWriter, r *http.Request, req reportapi.Departments) error {
	departments := service.Each(req.Departments, func(d reportapi.Department) report.Department {
		return report.Department{ID: d.ID, Name: strings.TrimSpace(d.Name), Categories: d.CategoryIds, Routes: service.Each(d.Routes, func(r reportapi.AreaRoute) report.Route {
			return report.Route{Area: r.Area, Category: r.CategoryID}
		})}
	})
	if err := report.CheckDepartments(departments); err != nil {
		return err
	}
	if err := h.Desk.SetDepartments(r.Context(), departments, user(r).AsOfficial()); err != nil {
		return err
	}
	return h.listDepartments(w, r)
}
