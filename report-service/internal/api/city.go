package api

import (
	"net/http"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// A City is what the parts of the API know of the city.
type City struct {
	Name       string
	Languages  []string    // of its residents, its first one first
	Bounds     *report.Box // where reports may be; everywhere if it is nil
	Categories *settings.Categories
	Areas      *settings.Areas
}

// languageOf returns the city's language that the author of r prefers.
func (c City) languageOf(r *http.Request) string {
	return service.PreferredLanguage(r.Header.Get("Accept-Language"), c.Languages...)
}
