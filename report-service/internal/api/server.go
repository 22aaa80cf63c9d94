// Package api is the HTTP side of report-service.
//
// docs/openapi/report-service.yaml is its source: the routes, the roles that
// may use them, and what a request may contain are read from it at start; the
// types of requests and answers are the client's (platform/client/reportapi),
// generated from it. A request that violates the document is refused with all
// its faults before it reaches a handler.
package api

import (
	"context"
	_ "embed"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/operators"
	"github.com/cityconnect/cityconnect/platform/owndata"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/story"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// changeTimeout is how long a change may wait until it is decided. After that
// most clients have given up, and may have sent another request. So changes
// that a process finds after it was frozen are refused as well.
const changeTimeout = 5 * time.Second

// A Config is what the API needs.
type Config struct {
	Reports    ReportStore
	Categories CategoryStore
	Areas      AreaStore
	Comments   CommentStore // nil in a city whose residents write none
	Photos     PhotoStore
	Files      Files // nil in a city whose reports have no photos
	Moderation ModerationStore
	Workbench  WorkbenchStore
	Duplicates DuplicateStore
	Deadlines  DeadlineStore
	Questions  QuestionStore
	OwnData    func(ctx context.Context, userID string) (owndata.Answer, error) // what is held about a person
	Open311    Open311
	Guests     Guests

	Outbox         *outbox.Store
	Relay          Relay
	Story          *story.Store                                                           // of messages that other groups handle in this database
	History        func(ctx context.Context, span time.Duration) (history.History, error) // of the outbox
	Reconciliation operators.Reconciliation                                               // of the groups whose tables are in this database
	Erasures       *erasure.Eraser
	Schedules      *schedule.Scheduler
	ScheduleAudit  func(ctx context.Context, limit int) ([]schedule.Act, error)

	Monitor *monitor.Monitor
	Auth    *auth.Verifier
	Health  *service.Health
	Metrics *prometheus.Registry
	Log     zerolog.Logger

	// CityName is what the city calls itself, and Languages are those of its residents,
	// the city's first one first.
	CityName  string
	Languages []string

	// CostlyAtOnce is how many searches, sorted lists, maps or exports may run at a time, each of
	// everybody and of officials.
	CostlyAtOnce int

	// City is where reports may be; everywhere if it is nil.
	City *report.Box

	// How often a user may file reports (and, separately, report abuse and answer
	// questions), vote and comment.
	ReportsPerUser, VotesPerUser, CommentsPerUser ratelimit.Limit
}

// operations answer a part of the document's operations.
type operations = openapi.Operations

// openapiYAML is a copy of docs/openapi/report-service.yaml, which cannot be
// embedded from here; `go generate` makes it and a test compares the two.
//
//go:embed openapi.yaml
var openapiYAML []byte

// formats are the formats of strings that only this document uses.
var formats = openapi.Formats{
	"bbox":     func(s string) error { _, err := report.ParseBox(s); return err },
	"cursor":   func(s string) error { _, err := report.ParseCursor(s); return err },
	"if-match": func(s string) error { _, err := report.ParseIfMatch(s); return err },
}

// photoUpload is larger than a text.
var photoUpload = service.Upload{
	Method: http.MethodPut, Path: regexp.MustCompile(`^/reports/[^/]+/photos/[^/]+$`), MaxBytes: report.MaxPhotoBytes,
}

// New returns the handler of the whole API.
func New(cfg Config) (http.Handler, error) {
	doc, err := openapi.Load(openapiYAML, formats)
	if err != nil {
		return nil, err
	}
	r := service.NewRouter(doc.Version(), cfg.Log, cfg.Metrics, cfg.Health, photoUpload, areaUpload)
	r.Method(http.MethodGet, "/openapi.json", doc)

	words, parts := categories{cfg.Categories, cfg.Languages}, areas{cfg.Areas, cfg.Languages}
	gates := newGates(cfg.CostlyAtOnce)
	if cfg.Open311.On { // which knows keys, and no sign-in
		applications, err := cfg.Open311.handler(cfg, gates)
		if err != nil {
			return nil, err
		}
		r.Mount("/open311", applications)
	}
	workbench := workbenchHandlers{cfg.Workbench, cfg.Duplicates, cfg.Reports, cfg.Areas, gates}
	r.Group(func(r chi.Router) {
		r.Use(cfg.Auth.Middleware)
		err = doc.Mount(r, service.Errors{Log: cfg.Log, Problems: problems},
			operations{"createDevToken": {Handler: cfg.Auth.IssueDevToken, Timeout: service.DefaultTimeout}},
			words.operations(),
			parts.operations(),
			reportHandlers{cfg.Reports, words, cfg.Areas, cfg.CityName, cfg.City, ratelimit.New(cfg.ReportsPerUser), ratelimit.New(cfg.VotesPerUser), ratelimit.New(perOfficial), gates, newSharedMaps(), cfg.Guests}.operations(),
			commentHandlers{cfg.Comments, ratelimit.New(cfg.CommentsPerUser), cfg.Guests.Comments}.operations(),
			photoHandlers{cfg.Photos, cfg.Files, rate.NewLimiter(uploadRate, uploadBurst),
				ratelimit.New(ratelimit.Limit{Turns: uploadsPerHour, Period: time.Hour}), cfg.Log}.operations(),
			moderationHandlers{cfg.Moderation, workbench, ratelimit.New(cfg.ReportsPerUser), ratelimit.New(abusePerAddress)}.operations(),
			workbench.operations(),
			operations{"readOwnData": {Handler: readOwnData(cfg.OwnData, gates), Timeout: service.DefaultTimeout}},
			deadlineHandlers{cfg.Deadlines, cfg.Categories}.operations(),
			questionHandlers{cfg.Questions, ratelimit.New(cfg.ReportsPerUser)}.operations(),
			cfg.Open311.operations(),
			newGuestHandlers(cfg.Guests, cfg.Auth).operations(),
			outboxHandlers{cfg.Outbox, cfg.Relay, cfg.Story, cfg.History}.operations(),
			operators.ScheduleOperations(cfg.Schedules),
			operators.ReconciliationOperations(cfg.Reconciliation),
			operations{"auditSchedules": {Handler: auditSchedules(cfg.ScheduleAudit), Timeout: service.DefaultTimeout}},
			operators.ErasureOperations(cfg.Erasures),
			operators.HealthOperations(cfg.Monitor),
		)
	})
	return r, err
}

// limited refuses requests of a user beyond l. What fails by our fault does not count:
// users who repeat what an outage refused are not punished for it. A refusal counts, or
// it could be asked for without end.
func limited(l *ratelimit.Limiter, h service.HandlerFunc) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		return withTurn(l, caller(r).ID, "too many requests of this user", h, w, r)
	}
}

// limitedForAll is limited for accounts. Clients without one are limited by their
// address, which is kept in memory alone: guests, too, since anybody becomes any number of them.
func limitedForAll(byUser, byAddress *ratelimit.Limiter, h service.HandlerFunc) service.HandlerFunc {
	signedIn := limited(byUser, h)
	return func(w http.ResponseWriter, r *http.Request) error {
		if by := caller(r); by.ID != "" && !by.Guest {
			return signedIn(w, r)
		}
		return withTurn(byAddress, networkOf(r), "too many requests of this address", h, w, r)
	}
}

// withTurn handles a request if l has a turn of key.
func withTurn(l *ratelimit.Limiter, key, refusal string, h service.HandlerFunc, w http.ResponseWriter, r *http.Request) error {
	if wait := l.Take(key); wait > 0 {
		problem := service.TooManyRequests
		problem.RetryAfter = wait
		return problem.New(refusal)
	}
	err := h(w, r)
	if isOurs(err) {
		l.GiveBack(key)
	}
	return err
}

// isOurs reports whether a request failed by our fault.
func isOurs(err error) bool {
	if problem, ok := errors.AsType[service.Problem](err); ok {
		return problem.Status >= http.StatusInternalServerError
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known.Kind == fault.Unavailable || known.Kind == report.StillRunning
	}
	return err != nil
}
