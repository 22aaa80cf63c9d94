package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/area"
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
		"listCategoryChanges": {Handler: answered(h.changes), Timeout: service.DefaultTimeout},
	}
}

// list handles GET /categories.
func (h Categories) list(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Categories.List(r.Context())
	if err != nil {
		return err
	}
	area, err := h.areaIn(r)
	if err != nil {
		return err
	}
	language, all := h.languageOf(r), r.URL.Query().Get("include") == "retired"
	out := reportapi.CategoryList{Categories: []reportapi.Category{}}
	for _, c := range list.Categories {
		if c.Retired && !all {
			continue
		}
		c = c.In(area)
		t := c.Text(append([]string{language}, h.Languages...)...)
		out.Categories = append(out.Categories, reportapi.Category{
			ID: c.ID, Name: t.Name, Hint: t.Hint, Group: t.Group, Icon: c.Icon, AcceptsReports: c.Accepts && !c.Retired, Link: t.Link, Retired: c.Retired,
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
	return send(w, "application/json", body)
}

// areaIn returns the area of the place in a query.
func (h Categories) areaIn(r *http.Request) (int32, error) {
	query := r.URL.Query()
	switch given := query.Has("latitude"); {
	case given != query.Has("longitude"):
		return 0, fault.NewInvalid("latitude", "must come with longitude")
	case !given:
		return report.Nowhere, nil
	}
	number := func(name string) float64 {
		return checked(func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }, query.Get(name))
	}
	area, err := h.Areas.At(r.Context(), report.NewPosition(number("latitude"), number("longitude")))
	return area.ID, err
}

// settings handles GET /reports/categories.
func (h Categories) settings(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Categories.List(r.Context())
	if err != nil {
		return err
	}
	return h.answer(w, r, list)
}

func (h Categories) answer(w http.ResponseWriter, r *http.Request, list report.CategoryList) error {
	areas, err := h.Areas.List(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("ETag", report.ETag(list.Revision))
	return service.Encode(w, http.StatusOK, reportapi.CategorySettings{Languages: h.Languages, Categories: categorySettings(list, areas)})
}

// categorySettings are categories with all their texts.
func categorySettings(list report.CategoryList, areas *area.List) []reportapi.CategorySetting {
	codes := map[int32]string{0: ""}
	for _, a := range areas.InUse() {
		codes[a.ID] = a.Code
	}
	out := make([]reportapi.CategorySetting, len(list.Categories))
	for i, c := range list.Categories {
		setting := reportapi.CategorySetting{ID: c.ID, Icon: c.Icon, AcceptsReports: c.Accepts, Retired: c.Retired, Texts: []reportapi.CategoryText{}, Signposts: []reportapi.Signpost{}}
		for language, t := range c.Texts {
			setting.Texts = append(setting.Texts, reportapi.CategoryText{Language: language, Name: t.Name, Hint: t.Hint, Group: t.Group})
		}
		slices.SortFunc(setting.Texts, func(a, b reportapi.CategoryText) int { return strings.Compare(a.Language, b.Language) })
		for _, s := range c.Signposts {
			code, inUse := codes[s.Area]
			if !inUse {
				continue
			}
			shown := reportapi.Signpost{Area: code}
			for _, language := range slices.Sorted(maps.Keys(s.Texts)) {
				shown.Texts = append(shown.Texts, reportapi.SignpostText{Language: language, Text: s.Texts[language].Text, Link: s.Texts[language].Link})
			}
			setting.Signposts = append(setting.Signposts, shown)
		}
		out[i] = setting
	}
	return out
}

// signposts returns those of a category, in the order of their areas' ids.
func signposts(given []reportapi.Signpost, areas *area.List, pointer string) ([]report.AreaSignpost, error) {
	ids := map[string]int32{"": 0}
	for _, a := range areas.InUse() {
		ids[a.Code] = a.ID
	}
	var list []report.AreaSignpost
	for i, s := range given {
		id, known := ids[s.Area]
		switch {
		case !known:
			return nil, fault.NewInvalid(fmt.Sprintf("%s/%d/area", pointer, i), "must be the code of an area, or be left out")
		case slices.ContainsFunc(list, func(other report.AreaSignpost) bool { return other.Area == id }):
			return nil, fault.NewInvalid(fmt.Sprintf("%s/%d/area", pointer, i), "is already used by another signpost of the category")
		}
		texts := make(map[string]report.SignpostText, len(s.Texts))
		for _, t := range s.Texts {
			texts[t.Language] = report.SignpostText{Text: t.Text, Link: t.Link}
		}
		list = append(list, report.AreaSignpost{Area: id, Texts: texts})
	}
	slices.SortFunc(list, func(a, b report.AreaSignpost) int { return cmp.Compare(a.Area, b.Area) })
	return list, nil
}

// set handles PUT /reports/categories.
func (h Categories) set(w http.ResponseWriter, r *http.Request, req reportapi.NewCategories) error {
	list, err := h.read(r.Context(), req)
	if err != nil {
		return err
	}
	if err := report.CheckCategories(list, h.Languages); err != nil {
		return err
	}
	stored, err := h.Categories.Replace(r.Context(), list, ifMatch(r), user(r).AsOfficial())
	if err != nil {
		return err
	}
	return h.answer(w, r, stored)
}

// read returns the categories of a request.
func (h Categories) read(ctx context.Context, req reportapi.NewCategories) ([]report.Category, error) {
	areas, err := h.Areas.List(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := h.Categories.ByID(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]report.Category, len(req.Categories))
	for i, c := range req.Categories {
		list[i] = report.Category{ID: c.ID, Icon: c.Icon, Accepts: c.AcceptsReports, Texts: make(map[string]report.CategoryText, len(c.Texts))}
		for j, t := range c.Texts {
			if _, twice := list[i].Texts[t.Language]; twice {
				return nil, fault.NewInvalid(fmt.Sprintf("/categories/%d/texts/%d/language", i, j), "is already used by another text of the category")
			}
			list[i].Texts[t.Language] = report.CategoryText{Name: t.Name, Hint: t.Hint, Group: t.Group}
		}
		if c.Signposts == nil {
			list[i].Signposts = kept[c.ID].Signposts
		} else if list[i].Signposts, err = signposts(c.Signposts, areas, fmt.Sprintf("/categories/%d/signposts", i)); err != nil {
			return nil, err
		}
		list[i].Name = list[i].Texts[h.Languages[0]].Name
	}
	return list, nil
}

// changes handles GET /reports/categories/changes.
func (h Categories) changes(r *http.Request) (reportapi.CategoryChanges, error) {
	const most = 50
	changes, err := h.Categories.Changes(r.Context(), most)
	return reportapi.CategoryChanges{Changes: service.Each(changes, func(c report.CategoryChange) reportapi.CategoryChange {
		return reportapi.CategoryChange{At: c.At, Actor: c.Actor, ActorName: c.ActorName, Added: c.Added, Changed: c.Changed, Retired: c.Retired, Moved: c.Moved}
	})}, err
}
