// Package api is the HTTP side of notification-service: a type for each subject, whose
// Operations the program passes to New.
//
// docs/openapi/notification-service.yaml is its source: the routes, the roles
// that may use them, and what a request may contain are read from it at start,
// and the types of requests and answers are the client's
// (platform/client/notificationapi), generated from it.
package api

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/docs"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Server is what all parts of the API stand on.
type Server struct {
	Auth    *auth.Verifier
	Health  *service.Health
	Metrics *prometheus.Registry
	Log     zerolog.Logger
	Page    http.Handler                     // what a browser gets; it serves what no operation does
	Links   func(chi.Router, service.Errors) // see Callers.Links
	// Problems has the kinds of failures that only some parts have, as the client sees them.
	Problems map[fault.Kind]service.ProblemType
}

// New returns the handler of the whole service. It fails if the parts do not answer each
// operation of the document once.
func New(s Server, parts ...openapi.Operations) (http.Handler, error) {
	doc, err := openapi.Load(docs.Read("openapi/notification-service.yaml"), nil)
	if err != nil {
		return nil, err
	}
	r := service.NewRouter(doc.Version(), s.Log, s.Metrics, s.Health)
	r.Method(http.MethodGet, "/openapi.json", doc)
	errs := service.Errors{Log: s.Log, Problems: s.Problems}
	s.Links(r, errs)
	parts = append(parts, openapi.Operations{
		"openSession":    {Handler: s.Auth.CreateSession, Timeout: service.DefaultTimeout},
		"readSession":    {Handler: s.Auth.ReadSession, Timeout: service.DefaultTimeout},
		"closeSession":   {Handler: s.Auth.DeleteSession, Timeout: service.DefaultTimeout},
		"createDevToken": {Handler: s.Auth.IssueDevToken, Timeout: service.DefaultTimeout},
	})
	r.Group(func(r chi.Router) {
		r.Use(s.Auth.Middleware)
		err = doc.Mount(r, errs, parts...)
	})
	if s.Page != nil {
		r.NotFound(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				service.NotFoundHandler(w, r)
				return
			}
			s.Page.ServeHTTP(w, r)
		})
	}
	return r, err
}

// refuse has the operations answered with err, in a city without the feature that
// they are about.
func refuse(operations openapi.Operations, err error) {
	for id, o := range operations {
		o.Handler = func(http.ResponseWriter, *http.Request) error { return err }
		operations[id] = o
	}
}

// reader returns on whose behalf the request is made.
func reader(r *http.Request) notification.Reader {
	p := auth.Must(r)
	reader := notification.Reader{UserID: p.ID, Official: p.Official()}
	if p.Limited() {
		reader.Departments = strings.Join(p.Departments, " ")
	}
	return reader
}
