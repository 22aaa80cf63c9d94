// Package api is the HTTP side of notification-service.
//
// docs/openapi/notification-service.yaml is its source: the routes, the roles
// that may use them, and what a request may contain are read from it at start,
// and the types in types.gen.go are generated from it.
package api

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// openapiYAML is a copy of docs/openapi/notification-service.yaml, which
// cannot be embedded from here; `go generate` makes it and a test compares
// the two.
//
//go:embed openapi.yaml
var openapiYAML []byte

// A Store keeps notifications and what has been read of them.
type Store interface {
	View(ctx context.Context, reader notification.Reader) (notification.View, error)
	List(ctx context.Context, reader notification.Reader, cursor notification.Cursor, unread bool, limit int) (notification.Page, error)
	Mark(ctx context.Context, reader notification.Reader, id uuid.UUID, read bool) (notification.Item, error)
	MarkAll(ctx context.Context, reader notification.Reader, cursor notification.Cursor) (notification.View, error)
	SetOnlyOwn(ctx context.Context, reader notification.Reader, only bool) (notification.View, error)
	Follow(ctx context.Context, reader notification.Reader, report uuid.UUID) error
	Unfollow(ctx context.Context, reader notification.Reader, report uuid.UUID) error
	Follows(ctx context.Context, reader notification.Reader) ([]notification.Follow, error)
	SetMailConsent(ctx context.Context, reader notification.Reader, report uuid.UUID, wanted bool) error
}

// Streams answers with live streams.
type Streams interface {
	ServeNotifications(w http.ResponseWriter, r *http.Request, reader notification.Reader, expires time.Time)
	ServeFeed(w http.ResponseWriter, r *http.Request)
}

// A Config is what the API works with.
type Config struct {
	Store   Store
	Streams Streams
	Auth    *auth.Verifier
	Health  *service.Health
	Metrics *prometheus.Registry
	Page    http.Handler     // what a browser gets
	Admin   openapi.Handlers // for operators, by operationId
	// Problems has the kinds of failures that only the operators' operations
	// have, as the client sees them.
	Problems map[fault.Kind]service.ProblemType
	Mail     Mail
	Push     Push
	Places   Geocoder // nil in a city without one
	Log      zerolog.Logger
}

// A server answers the operations of the document.
type server struct{ Config }

// New returns the handler of the whole service.
func New(cfg Config) (http.Handler, error) {
	doc, err := openapi.Load(openapiYAML, nil)
	if err != nil {
		return nil, err
	}
	s := &server{cfg}
	r := service.NewRouter(doc.Version(), cfg.Log, cfg.Metrics, cfg.Health)
	r.Method(http.MethodGet, "/openapi.json", doc)

	// These take no sign-in, and a cookie that has expired must not be in the way.
	errs := service.Errors{Log: cfg.Log, Problems: cfg.Problems}
	r.Get("/u/{token}", errs.Handle(service.Timeout(service.DefaultTimeout, s.unsubscribe)))
	r.Post("/u/{token}", errs.Handle(service.Timeout(service.DefaultTimeout, s.unsubscribe)))
	r.Post("/mail/bounces", errs.Handle(service.Timeout(service.DefaultTimeout, s.takeBounce)))

	handlers := s.handlers()
	maps.Copy(handlers, s.mailHandlers())
	maps.Copy(handlers, s.pushHandlers())
	maps.Copy(handlers, s.preferenceHandlers())
	maps.Copy(handlers, s.placeHandlers())
	maps.Copy(handlers, cfg.Admin)
	r.Group(func(r chi.Router) {
		r.Use(cfg.Auth.Middleware)
		err = doc.Mount(r, handlers, errs)
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

// handlers has a handler for each operation of the document.
func (s *server) handlers() openapi.Handlers {
	return openapi.Handlers{
		"listNotifications":   service.Timeout(service.DefaultTimeout, s.listNotifications),
		"countUnread":         service.Timeout(service.DefaultTimeout, s.countUnread),
		"markNotification":    service.Timeout(service.DefaultTimeout, s.markNotification),
		"markAllRead":         service.Timeout(service.DefaultTimeout, s.markAllRead),
		"setScope":            service.Timeout(service.DefaultTimeout, s.setScope),
		"listFollows":         service.Timeout(service.DefaultTimeout, s.listFollows),
		"follow":              service.Timeout(service.DefaultTimeout, s.follow),
		"unfollow":            service.Timeout(service.DefaultTimeout, s.unfollow),
		"streamNotifications": s.streamNotifications,
		"streamFeed":          s.streamFeed,
		"openSession":         s.Auth.CreateSession,
		"readSession":         s.Auth.ReadSession,
		"closeSession":        s.Auth.DeleteSession,
		"createDevToken":      s.Auth.IssueDevToken,
	}
}

// reader returns on whose behalf the request is made. The document lets only
// those pass who signed in.
func reader(r *http.Request) (notification.Reader, auth.Principal) {
	p, ok := auth.From(r.Context())
	if !ok {
		panic(fmt.Sprintf("api: %s reached its handler without a principal", r.Pattern))
	}
	return notification.Reader{UserID: p.ID, Official: p.Role == auth.Official}, p
}
