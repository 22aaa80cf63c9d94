// Package api is the HTTP side of report-service.
//
// docs/openapi/report-service.yaml is its source: the routes, the roles that
// may use them, and what a request may contain are read from it at start, and
// the types in types.gen.go are generated from it. A request that breaks the
// document is refused with all its faults before a handler sees it.
package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// bodyLimit has room for the longest description with every character
	// written as an escape.
	bodyLimit = 64 << 10
	// requestTimeout bounds what a request may wait for the database, below
	// what gateways and clients wait for us.
	requestTimeout = 15 * time.Second
)

// A Store keeps reports.
type Store interface {
	Categories(ctx context.Context) ([]report.Category, error)
	Category(ctx context.Context, id int32) (report.Category, error)
	Create(ctx context.Context, f *report.Filing, once *postgres.Once) (repeated *postgres.Answer, err error)
	Get(ctx context.Context, id uuid.UUID, reader string) (report.View, error)
	History(ctx context.Context, id uuid.UUID) ([]report.Change, error)
	List(ctx context.Context, f report.Filter, after *report.Cursor, limit int, reader string) (report.Page, error)
	Move(ctx context.Context, id uuid.UUID, m report.Move) (report.View, error)
	Vote(ctx context.Context, id uuid.UUID, voter string, vote report.Vote) (postgres.Tally, error)
}

// A Config is what the API works with.
type Config struct {
	Store   Store
	Auth    *auth.Verifier
	Health  *service.Health
	Metrics *prometheus.Registry
	Log     zerolog.Logger
}

// A server answers the operations of the document.
type server struct {
	Config
	doc    *document
	errors service.Errors
}

// New returns the handler of the whole API.
func New(cfg Config) (http.Handler, error) {
	doc, err := loadDocument()
	if err != nil {
		return nil, err
	}
	s := &server{Config: cfg, doc: doc, errors: service.Errors{Log: cfg.Log, Translate: translate}}

	r := chi.NewRouter()
	r.Use(service.Trace, service.AccessLog(cfg.Log), service.HTTPMetrics(cfg.Metrics), service.Recover(cfg.Log), middleware.GetHead)
	r.NotFound(service.NotFoundHandler)
	r.MethodNotAllowed(methodNotAllowed(r))

	r.Get("/livez", cfg.Health.Live)
	r.Get("/readyz", cfg.Health.Ready)
	r.Get("/health", cfg.Health.Ready)
	r.Method(http.MethodGet, "/metrics", service.MetricsHandler(cfg.Metrics))
	r.Get("/openapi.json", doc.serve)

	var missing error
	r.Group(func(r chi.Router) {
		r.Use(service.BodyLimit(bodyLimit), cfg.Auth.Middleware, withTimeout)
		missing = s.route(r)
	})
	return r, missing
}

// handlers has a handler for each operation of the document.
func (s *server) handlers() map[string]service.HandlerFunc {
	return map[string]service.HandlerFunc{
		"listCategories":   s.listCategories,
		"listReports":      s.listReports,
		"createReport":     s.createReport,
		"listMyReports":    s.listMyReports,
		"getReport":        s.getReport,
		"getReportHistory": s.getHistory,
		"changeStatus":     s.changeStatus,
		"vote":             s.vote,
		"withdrawVote":     s.withdrawVote,
		"createDevToken":   s.Auth.IssueDevToken,
	}
}

// route mounts the operations of the document that are not mounted yet.
func (s *server) route(r chi.Router) error {
	handlers := s.handlers()
	for op := range s.doc.operations() {
		h, ok := handlers[op.ID()]
		switch {
		case ok:
			r.Method(op.Method, op.Path, s.operation(op, h))
		case strings.HasPrefix(op.Path, "/admin/"): // TEMP
		case !r.Match(chi.NewRouteContext(), op.Method, op.Path):
			return fmt.Errorf("operation %s has no handler", op.ID())
		}
	}
	return nil
}

// operation puts before h what the document asks for: a role, and a valid
// request.
func (s *server) operation(op *operation, h service.HandlerFunc) http.Handler {
	checked := s.errors.Handle(func(w http.ResponseWriter, r *http.Request) error {
		err := op.check(r)
		if err == nil {
			err = h(w, r)
		}
		s.note(w, r, err)
		return err
	})
	if op.Public() {
		return checked
	}
	return auth.Require(op.Roles()...)(checked)
}

// withTimeout bounds what a request waits for.
func withTimeout(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// methodNotAllowed says, as RFC 9110 wants, which methods the path does know.
func methodNotAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
			if routes.Match(chi.NewRouteContext(), method, r.URL.Path) {
				w.Header().Add("Allow", method)
			}
		}
		service.MethodNotAllowedHandler(w, r)
	}
}
