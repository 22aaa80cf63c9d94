// Package api is the HTTP side of notification-service.
//
// docs/openapi/notification-service.yaml is its source: the routes, the roles
// that may use them, and what a request may contain are read from it at start,
// and the types of requests and answers are the client's
// (platform/client/notificationapi), generated from it.
package api

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/docs"
	"github.com/cityconnect/cityconnect/notification-service/internal/geocoder"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/owndata"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Config is what the API works with.
type Config struct {
	Notifications NotificationStore
	Follows       FollowStore
	Consents      ConsentStore
	Streams       Streams
	Auth          *auth.Verifier
	Health        *service.Health
	Metrics       *prometheus.Registry
	Page          http.Handler         // what a browser gets
	Admin         []openapi.Operations // for operators
	// Problems has the kinds of failures that only the operators' operations
	// have, as the client sees them.
	Problems map[fault.Kind]service.ProblemType
	Mail     Mail
	Push     Push
	Places   Geocoder // nil in a city without one
	// OwnData is what is held about a person, with the address sealed.
	OwnData func(ctx context.Context, userID string) (owndata.Answer, error)
	Log     zerolog.Logger
}

// A server answers the operations of the document.
type server struct {
	Config
	placeTurns geocoder.Budget
}

// New returns the handler of the whole service.
func New(cfg Config) (http.Handler, error) {
	doc, err := openapi.Load(docs.Read("openapi/notification-service.yaml"), nil)
	if err != nil {
		return nil, err
	}
	s := &server{Config: cfg}
	r := service.NewRouter(doc.Version(), cfg.Log, cfg.Metrics, cfg.Health)
	r.Method(http.MethodGet, "/openapi.json", doc)

	// These take no sign-in, and a cookie that has expired must not be in the way.
	errs := service.Errors{Log: cfg.Log, Problems: cfg.Problems}
	for _, path := range []string{"/u/{token}", "/u/{token}/"} {
		r.Get(path, errs.Handle(service.Timeout(service.DefaultTimeout, s.unsubscribe)))
		r.Post(path, errs.Handle(service.Timeout(service.DefaultTimeout, s.unsubscribe)))
	}
	for _, path := range []string{"/p/{token}", "/p/{token}/"} {
		r.Get(path, errs.Handle(service.Timeout(service.DefaultTimeout, s.prove)))
		r.Post(path, errs.Handle(service.Timeout(service.DefaultTimeout, s.prove)))
	}
	r.Post("/mail/bounces", errs.Handle(service.Timeout(service.DefaultTimeout, s.takeBounce)))

	operations := append(cfg.Admin[:len(cfg.Admin):len(cfg.Admin)],
		s.notificationOperations(), s.followOperations(), s.streamOperations(), s.mailOperations(), s.callerOperations(), s.pushOperations(),
		s.preferenceOperations(), s.placeOperations(), s.sessionOperations())
	r.Group(func(r chi.Router) {
		r.Use(cfg.Auth.Middleware)
		err = doc.Mount(r, errs, operations...)
	})
	if cfg.Page != nil {
		// The page gets what no operation serves.
		r.NotFound(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				service.NotFoundHandler(w, r)
				return
			}
			cfg.Page.ServeHTTP(w, r)
		})
	}
	return r, err
}

// sessionOperations are those about sessions and the signed-in user.
func (s *server) sessionOperations() openapi.Operations {
	return openapi.Operations{
		"openSession":    {Handler: s.Auth.CreateSession, Timeout: service.DefaultTimeout},
		"readSession":    {Handler: s.Auth.ReadSession, Timeout: service.DefaultTimeout},
		"closeSession":   {Handler: s.Auth.DeleteSession, Timeout: service.DefaultTimeout},
		"createDevToken": {Handler: s.Auth.IssueDevToken, Timeout: service.DefaultTimeout},
		"readOwnData":    {Handler: s.readOwnData, Timeout: service.DefaultTimeout},
	}
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
	return notification.Reader{UserID: p.ID, Official: p.Role == auth.Official}
}
