package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/area"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// maxSettingsFile has room for the areas, and for all else with every text as long as it
// may be.
const maxSettingsFile = area.MaxBytes + 2<<20

// A SettingsFile is the city's settings in one document, such as a test city's for the
// city itself. Its parts read and check theirs.
type SettingsFile struct {
	City
	Settings *settings.City
}

// Operations are those on the document.
func (h SettingsFile) Operations() openapi.Operations {
	return openapi.Operations{
		"getSettings": {Handler: h.get, Timeout: service.DefaultTimeout},
		"setSettings": {Handler: service.Decoded(h.set), Timeout: changeTimeout},
	}
}

// get handles GET /admin/reports/settings.
func (h SettingsFile) get(w http.ResponseWriter, r *http.Request) error {
	file, err := h.read(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("ETag", tagOf(file))
	return service.Encode(w, http.StatusOK, file)
}

// in returns h for settings within a transaction.
func (h SettingsFile) in(city *settings.City) SettingsFile {
	h.Settings, h.Categories, h.Areas = city, settings.NewCategories(city), settings.NewAreas(city)
	return h
}

func (h SettingsFile) desk() Settings { return Settings{Desk: settings.NewDesk(h.Settings)} }

func (h SettingsFile) read(ctx context.Context) (file reportapi.CitySettings, err error) {
	areas, err := h.Areas.List(ctx)
	if err != nil {
		return file, err
	}
	file.Areas = make([]json.RawMessage, len(areas.InUse()))
	for i, a := range areas.InUse() {
		if file.Areas[i], err = json.Marshal(areaSetting(a)); err != nil {
			return file, fmt.Errorf("encode area: %w", err)
		}
	}
	list, err := h.Categories.List(ctx)
	if err != nil {
		return file, err
	}
	file.Categories = categorySettings(list, areas)
	if file.Departments, err = h.desk().departments(ctx); err != nil {
		return file, err
	}
	if file.Calendar, err = (Calendar{Settings: h.Settings, Categories: h.Categories}).read(ctx); err != nil {
		return file, err
	}
	slices.SortFunc(file.Calendar.Targets, func(a, b reportapi.Target) int { return int(a.CategoryID - b.CategoryID) })
	file.Templates, err = h.desk().templates(ctx)
	return file, err
}

// tagOf returns the revision of a document, which equal ones share.
func tagOf(file reportapi.CitySettings) string {
	body, err := json.Marshal(file)
	if err != nil {
		panic(fmt.Sprintf("api: encode settings: %v", err)) // of texts, numbers and JSON
	}
	return service.Tag(body)
}

// errDryRun undoes a dry run.
var errDryRun = errors.New("dry run")

// set handles PUT /admin/reports/settings.
func (h SettingsFile) set(w http.ResponseWriter, r *http.Request, req reportapi.CitySettings) error {
	var before, after reportapi.CitySettings
	err := h.Settings.ReplaceAll(r.Context(), func(city *settings.City) (err error) {
		in := h.in(city)
		if before, err = in.read(r.Context()); err != nil {
			return err
		}
		if match := r.Header.Get("If-Match"); strings.TrimSpace(match) != "*" && !strings.Contains(match, tagOf(before)) {
			return fault.New(report.Stale, "somebody else has changed the settings since")
		}
		if err := in.replace(r.Context(), req, user(r).AsOfficial()); err != nil {
			return err
		}
		if after, err = in.read(r.Context()); err == nil && r.URL.Query().Get("dry_run") == "true" {
			err = errDryRun
		}
		return err
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	w.Header().Set("ETag", tagOf(after))
	return service.Encode(w, http.StatusOK, reportapi.SettingsChanges{Changes: settingsChanges(before, after)})
}

// replace makes the settings those of a file. Areas come first and departments behind the
// categories, because what comes later names them.
func (h SettingsFile) replace(ctx context.Context, req reportapi.CitySettings, by report.Official) error {
	collection, err := json.Marshal(map[string]any{"type": "FeatureCollection", "features": req.Areas})
	if err != nil {
		return fmt.Errorf("encode areas: %w", err)
	}
	areas, _, err := Areas{h.City}.read(collection, "/areas")
	if err != nil {
		return withoutFeatures(err)
	}
	if _, err := h.Areas.Replace(ctx, areas, report.Versions{}, by); err != nil {
		return err
	}
	list, err := Categories{h.City}.read(ctx, reportapi.NewCategories{Categories: service.Each(req.Categories, func(c reportapi.CategorySetting) reportapi.NewCategory {
		return reportapi.NewCategory{ID: c.ID, Texts: c.Texts, Icon: c.Icon, AcceptsReports: c.AcceptsReports, Signposts: orEmpty(c.Signposts)}
	})})
	if err != nil {
		return err
	}
	inUse := len(list)
	for i, c := range req.Categories {
		list[i].Name = cmp.Or(list[i].Name, list[i].Text(h.Languages...).Name) // a retired one may lack the city's first language
		if list[i].Retired = c.Retired; c.Retired {
			inUse = min(inUse, i)
		} else if inUse < i {
			return fault.NewInvalid(fmt.Sprintf("/categories/%d/retired", i), "must be true: retired categories come last")
		}
	}
	if err := report.CheckCategories(list[:inUse], h.Languages); err != nil {
		return err
	}
	if _, err := h.Categories.Replace(ctx, list, report.Versions{}, by); err != nil {
		return err
	}
	err = h.desk().replaceDepartments(ctx, reportapi.NewDepartments{Departments: service.Each(req.Departments, func(d reportapi.Department) reportapi.NewDepartment {
		return reportapi.NewDepartment(d)
	})}, by)
	if err != nil {
		return err
	}
	err = Calendar{Settings: h.Settings, Categories: h.Categories}.set(ctx, req.Calendar, by)
	if known, ok := errors.AsType[*fault.Error](err); ok && known.Field != "" {
		return fault.NewInvalid("/calendar"+known.Field, known.Msg)
	}
	if err != nil {
		return err
	}
	return h.desk().replaceTemplates(ctx, reportapi.Templates{Templates: req.Templates})
}

// withoutFeatures names the faults of areas as they are in the document, which has the
// features alone.
func withoutFeatures(err error) error {
	problem, ok := errors.AsType[service.Problem](err)
	if !ok {
		return err
	}
	for i := range problem.Errors {
		problem.Errors[i].Pointer = strings.Replace(problem.Errors[i].Pointer, "/areas/features", "/areas", 1)
	}
	return problem
}

// settingsChanges returns what differs between two documents.
func settingsChanges(before, after reportapi.CitySettings) []reportapi.SettingsChange {
	changes := changesOf("areas", before.Areas, after.Areas, func(a json.RawMessage) string {
		var area reportapi.AreaSetting
		_ = json.Unmarshal(a, &area) // made by us
		return area.Properties.Code
	})
	changes = append(changes, changesOf("categories", before.Categories, after.Categories, func(c reportapi.CategorySetting) string { return fmt.Sprint(c.ID) })...)
	changes = append(changes, changesOf("departments", before.Departments, after.Departments, func(d reportapi.Department) string { return fmt.Sprint(d.ID) })...)
	changes = append(changes, changesOf("calendar", []reportapi.Calendar{before.Calendar}, []reportapi.Calendar{after.Calendar}, func(reportapi.Calendar) string { return "" })...)
	return append(changes, changesOf("templates", before.Templates, after.Templates, func(t reportapi.Template) string { return fmt.Sprint(t.ID) })...)
}

// changesOf compares two lists by the keys of their items.
func changesOf[T any](setting string, before, after []T, key func(T) string) []reportapi.SettingsChange {
	changes := []reportapi.SettingsChange{}
	note := func(kind string, items ...T) {
		for _, item := range items {
			changes = append(changes, reportapi.SettingsChange{Setting: reportapi.SettingsChangeSetting(setting), Change: reportapi.SettingsChangeChange(kind), Key: key(item)})
		}
	}
	find := func(items []T, of T) int {
		return slices.IndexFunc(items, func(item T) bool { return key(item) == key(of) })
	}
	for i, item := range after {
		switch was := find(before, item); {
		case was < 0:
			note("added", item)
		case !reflect.DeepEqual(before[was], item):
			note("changed", item)
		case was != i && len(before) == len(after):
			note("moved", item)
		}
	}
	for _, item := range before {
		if find(after, item) < 0 {
			note("removed", item)
		}
	}
	return changes
}
