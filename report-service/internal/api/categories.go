package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A CategoryStore keeps the city's categories.
type CategoryStore interface {
	List(ctx context.Context) (report.CategoryList, error)
	Category(ctx context.Context, id int32) (report.Category, error)
	Replace(ctx context.Context, categories []report.Category, at report.Versions, by report.Official) (report.CategoryList, error)
	Changes(ctx context.Context, limit int) ([]report.CategoryChange, error)
}

// categories are the city's categories, in the languages that its residents read.
type categories struct {
	store     CategoryStore
	languages []string // the city's first one first
}

func (h categories) operations() operations {
	return operations{
		"listCategories":      {Handler: h.list, Timeout: service.DefaultTimeout},
		"getCategorySettings": {Handler: h.settings, Timeout: service.DefaultTimeout},
		"setCategories":       {Handler: h.set, Timeout: service.DefaultTimeout},
		"listCategoryChanges": {Handler: h.changes, Timeout: service.DefaultTimeout},
	}
}

// languageOf returns the city's language that the author of r prefers.
func (h categories) languageOf(r *http.Request) string {
	return service.PreferredLanguage(r.Header.Get("Accept-Language"), h.languages...)
}

// list handles GET /categories.
func (h categories) list(w http.ResponseWriter, r *http.Request) error {
	list, err := h.store.List(r.Context())
	if err != nil {
		return err
	}
	language, all := h.languageOf(r), r.URL.Query().Get("include") == "retired"
	out := reportapi.CategoryList{Categories: []reportapi.Category{}}
	for _, c := range list.Categories {
		if c.Retired && !all {
			continue
		}
		t := c.Text(language, h.languages[0])
		out.Categories = append(out.Categories, reportapi.Category{
			ID: c.ID, Name: t.Name, Hint: t.Hint, Group: t.Group, Icon: c.Icon, AcceptsReports: c.Accepts && !c.Retired, Retired: c.Retired,
		})
	}
	body, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("encode categories: %w", err)
	}
	header := w.Header()
	header.Add("Vary", "Accept-Language")
	header.Set("Content-Language", language)
	if service.AnsweredBefore(w, r, service.Tag(body)) {
		return nil
	}
	header.Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client has gone
	return nil
}

// settings handles GET /reports/categories.
func (h categories) settings(w http.ResponseWriter, r *http.Request) error {
	list, err := h.store.List(r.Context())
	if err != nil {
		return err
	}
	return h.answer(w, list)
}

func (h categories) answer(w http.ResponseWriter, list report.CategoryList) error {
	out := reportapi.CategorySettings{Languages: h.languages, Categories: make([]reportapi.CategorySetting, len(list.Categories))}
	for i, c := range list.Categories {
		setting := reportapi.CategorySetting{ID: c.ID, Icon: c.Icon, AcceptsReports: c.Accepts, Retired: c.Retired, Texts: []reportapi.CategoryText{}}
		for language, t := range c.Texts {
			setting.Texts = append(setting.Texts, reportapi.CategoryText{Language: language, Name: t.Name, Hint: t.Hint, Group: t.Group})
		}
		slices.SortFunc(setting.Texts, func(a, b reportapi.CategoryText) int { return strings.Compare(a.Language, b.Language) })
		out.Categories[i] = setting
	}
	w.Header().Set("ETag", report.ETag(list.Revision))
	return service.Encode(w, http.StatusOK, out)
}

// set handles PUT /reports/categories.
func (h categories) set(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.NewCategories](r)
	if err != nil {
		return err
	}
	at, err := ifMatch(r)
	if err != nil {
		return err
	}
	list := make([]report.Category, len(req.Categories))
	for i, c := range req.Categories {
		list[i] = report.Category{ID: c.ID, Icon: c.Icon, Accepts: c.AcceptsReports, Texts: make(map[string]report.CategoryText, len(c.Texts))}
		for j, t := range c.Texts {
			if _, twice := list[i].Texts[t.Language]; twice {
				return fault.NewInvalid(fmt.Sprintf("/categories/%d/texts/%d/language", i, j), "is already used by another text of the category")
			}
			list[i].Texts[t.Language] = report.CategoryText{Name: t.Name, Hint: t.Hint, Group: t.Group}
		}
		list[i].Name = list[i].Texts[h.languages[0]].Name
	}
	if err := report.CheckCategories(list, h.languages); err != nil {
		return err
	}
	stored, err := h.store.Replace(r.Context(), list, at, caller(r).AsOfficial())
	if err != nil {
		return err
	}
	return h.answer(w, stored)
}

// changes handles GET /reports/categories/changes.
func (h categories) changes(w http.ResponseWriter, r *http.Request) error {
	const most = 50
	changes, err := h.store.Changes(r.Context(), most)
	if err != nil {
		return err
	}
	out := reportapi.CategoryChanges{Changes: make([]reportapi.CategoryChange, len(changes))}
	for i, c := range changes {
		out.Changes[i] = reportapi.CategoryChange{At: c.At, Actor: c.Actor, ActorName: c.ActorName, Added: c.Added, Changed: c.Changed, Retired: c.Retired, Moved: c.Moved}
	}
	return service.Encode(w, http.StatusOK, out)
}
