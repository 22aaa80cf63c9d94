package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Categories are the city's categories, in the languages that its residents read.
type Categories struct{ City }

// Operations are those on categories.
func (h Categories) Operations() openapi.Operations {
	return openapi.Operations{
		"listCategories":      {Handler: h.list, Timeout: service.DefaultTimeout},
		"getCategorySettings": {Handler: h.settings, Timeout: service.DefaultTimeout},
		"setCategories":       {Handler: service.Decoded(h.set), Timeout: service.DefaultTimeout},
		"listCategoryChanges": {Handler: h.changes, Timeout: service.DefaultTimeout},
	}
}

// list handles GET /categories.
func (h Categories) list(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Categories.List(r.Context())
	if err != nil {
		return err
	}
	language, all := h.languageOf(r), r.URL.Query().Get("include") == "retired"
	out := reportapi.CategoryList{Categories: []reportapi.Category{}}
	for _, c := range list.Categories {
		if c.Retired && !all {
			continue
		}
		t := c.Text(append([]string{language}, h.Languages...)...)
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
func (h Categories) settings(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Categories.List(r.Context())
	if err != nil {
		return err
	}
	return h.answer(w, list)
}

func (h Categories) answer(w http.ResponseWriter, list report.CategoryList) error {
	out := reportapi.CategorySettings{Languages: h.Languages, Categories: make([]reportapi.CategorySetting, len(list.Categories))}
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
func (h Categories) set(w http.ResponseWriter, r *http.Request, req reportapi.NewCategories) error {
	list := make([]report.Category, len(req.Categories))
	for i, c := range req.Categories {
		list[i] = report.Category{ID: c.ID, Icon: c.Icon, Accepts: c.AcceptsReports, Texts: make(map[string]report.CategoryText, len(c.Texts))}
		for j, t := range c.Texts {
			if _, twice := list[i].Texts[t.Language]; twice {
				return fault.NewInvalid(fmt.Sprintf("/categories/%d/texts/%d/language", i, j), "is already used by another text of the category")
			}
			list[i].Texts[t.Language] = report.CategoryText{Name: t.Name, Hint: t.Hint, Group: t.Group}
		}
		list[i].Name = list[i].Texts[h.Languages[0]].Name
	}
	if err := report.CheckCategories(list, h.Languages); err != nil {
		return err
	}
	stored, err := h.Categories.Replace(r.Context(), list, ifMatch(r), user(r).AsOfficial())
	if err != nil {
		return err
	}
	return h.answer(w, stored)
}

// changes handles GET /reports/categories/changes.
func (h Categories) changes(w http.ResponseWriter, r *http.Request) error {
	const most = 50
	changes, err := h.Categories.Changes(r.Context(), most)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.CategoryChanges{Changes: service.Each(changes, func(c report.CategoryChange) reportapi.CategoryChange {
		return reportapi.CategoryChange{At: c.At, Actor: c.Actor, ActorName: c.ActorName, Added: c.Added, Changed: c.Changed, Retired: c.Retired, Moved: c.Moved}
	})})
}
