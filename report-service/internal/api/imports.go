package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/imports"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// importTimeout is how long a large file takes to be stored, on a machine that is busy.
const importTimeout = 10 * time.Minute

// Imports are reports of the system that the city used before.
type Imports struct {
	City
	Store *postgres.Imports
}

// Operations are those on imports.
func (h Imports) Operations() openapi.Operations {
	return openapi.Operations{"importReports": {Handler: h.add, Timeout: service.Unlimited}} // as long as the client sends
}

// add handles POST /admin/reports/import.
func (h Imports) add(w http.ResponseWriter, r *http.Request) error {
	city, err := h.checks(r.Context())
	if err != nil {
		return err
	}
	file, faults, err := imports.Read(r.Body, strings.HasPrefix(r.Header.Get("Content-Type"), "text/csv"), city)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return service.InvalidInput.New("no report was imported", faults...)
	}
	end := time.Now().Add(importTimeout)
	ctx, cancel := context.WithDeadline(r.Context(), end)
	defer cancel()
	_ = http.NewResponseController(w).SetWriteDeadline(end.Add(service.DefaultTimeout)) // in tests without a connection it does nothing
	dryRun := r.URL.Query().Get("dry_run") == "true"
	added, err := h.Store.Add(ctx, file, dryRun, user(r).AsOfficial())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.ImportedReports{Count: int32(file.Count), Added: int32(added), Known: int32(file.Count - added)}) //nolint:gosec // imports.MaxReports bounds them
}

// checks returns what a file is checked against, as it is now.
func (h Imports) checks(ctx context.Context) (c imports.City, err error) {
	list, err := h.Categories.List(ctx)
	if err != nil {
		return c, err
	}
	areas, err := h.Areas.List(ctx)
	if err != nil {
		return c, err
	}
	// Two may have the same name: one in use goes first, and they stand first in the list.
	named := make(map[string]report.Category)
	name := func(s string, category report.Category) {
		if _, other := named[strings.ToLower(s)]; !other {
			named[strings.ToLower(s)] = category
		}
	}
	for _, category := range list.Categories {
		name(category.Name, category)
		name(strconv.Itoa(int(category.ID)), category)
		for _, text := range category.Texts {
			name(text.Name, category)
		}
	}
	return imports.City{
		Bounds: h.Bounds, Area: areas.At, Now: time.Now(),
		Category: func(name string) (report.Category, bool) { c, ok := named[strings.ToLower(name)]; return c, ok },
	}, nil
}
