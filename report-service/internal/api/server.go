// Package api is the HTTP side of report-service: a type for each subject, whose Operations
// the program passes to New.
//
// docs/openapi/report-service.yaml is its source: the routes, the roles that
// may use them, and what a request may contain are read from it at start; the
// types of requests and answers are the client's (platform/client/reportapi),
// generated from it. A request that violates the document is refused with all
// its faults before it reaches a handler.
package api

import (
	"net/http"
	"regexp"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/docs"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/area"
	"github.com/cityconnect/cityconnect/report-service/internal/asset"
	"github.com/cityconnect/cityconnect/report-service/internal/imports"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// formats are the formats of strings that only this document uses.
var formats = openapi.Formats{
	"bbox":     func(s string) error { _, err := report.ParseBox(s); return err },
	"cursor":   func(s string) error { _, err := report.ParseCursor(s); return err },
	"if-match": func(s string) error { _, err := report.ParseIfMatch(s); return err },
}

// uploads are larger than a text: photos, and the files of a city's borders, things and reports of before.
var uploads = []service.Upload{
	{Method: http.MethodPut, Path: regexp.MustCompile(`^/reports/[^/]+/photos/[^/]+$`), MaxBytes: report.MaxPhotoBytes},
	{Method: http.MethodPut, Path: regexp.MustCompile(`^/reports/areas$`), MaxBytes: area.MaxBytes},
	{Method: http.MethodPut, Path: regexp.MustCompile(`^/reports/assets/[^/]+$`), MaxBytes: asset.MaxBytes},
	{Method: http.MethodPut, Path: regexp.MustCompile(`^/admin/reports/settings$`), MaxBytes: maxSettingsFile},
	{Method: http.MethodPost, Path: regexp.MustCompile(`^/admin/reports/import$`), MaxBytes: imports.MaxBytes},
}

// A Server is what all parts of the API stand on.
type Server struct {
	Auth    *auth.Verifier
	Health  *service.Health
	Metrics *prometheus.Registry
	Log     zerolog.Logger
	Open311 http.Handler // nil in a city that takes no part; it knows keys, and no sign-in
	People  *People

	Connections Connections
}

// New returns the handler of the whole API. It fails if the parts do not answer each
// operation of the document once.
func New(s Server, parts ...openapi.Operations) (http.Handler, error) {
	doc, err := openapi.Load(docs.Read("openapi/report-service.yaml"), formats)
	if err != nil {
		return nil, err
	}
	r := service.NewRouter(doc.Version(), s.Log, s.Metrics, s.Health, uploads...)
	r.Method(http.MethodGet, "/openapi.json", doc)
	if s.Open311 != nil {
		r.Mount("/open311", s.Open311)
	}
	errs := service.Errors{Log: s.Log, Problems: problems}
	parts = append(parts, s.People.Operations(), s.Connections.Operations(), s.Connections.Firms.Operations(), openapi.Operations{"createDevToken": {Handler: s.Auth.IssueDevToken, Timeout: service.DefaultTimeout}})
	r.Group(func(r chi.Router) {
		r.Use(s.Connections.signIn(errs, s.Auth.Middleware), s.People.Notice)
		err = doc.Mount(r, errs, parts...)
	})
	return r, err
}
