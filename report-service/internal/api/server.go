// Package api is the HTTP side of report-service.
//
// docs/openapi/report-service.yaml is its source: the routes, the roles that
// may use them, and what a request may contain are read from it at start, and
// the types in types.gen.go are generated from it. A request that breaks the
// document is refused with all its faults before a handler sees it.
package api

import (
	"context"
	_ "embed"
	"maps"
	"net/http"
	"regexp"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/ratelimit"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// changeTimeout is how long a change may wait until it is decided. Most clients
// have given up by then, and may have sent something else since. What the
// process finds after it was frozen is refused as well.
const changeTimeout = 5 * time.Second

// An Outbox is what operators see and repair.
type Outbox interface {
	Stats(ctx context.Context) (outbox.Stats, error)
	List(ctx context.Context, f outbox.Filter) (outbox.Page, error)
	Retry(ctx context.Context, actor string, id uuid.UUID) error
	RetryAll(ctx context.Context, actor, routingKey string) (int64, error)
	Discard(ctx context.Context, actor string, id uuid.UUID, reason string) error
	Audit(ctx context.Context, limit int) ([]outbox.AuditEntry, error)
}

// A Relay reports its state.
type Relay interface {
	State() relay.State
}

// An Eraser erases persons from the database.
type Eraser interface {
	Request(ctx context.Context, actor, userID string) (erasure.Erasure, error)
	List(ctx context.Context, limit int) ([]erasure.Erasure, error)
}

// Schedules are the jobs that are due at times.
type Schedules interface {
	List(ctx context.Context) ([]schedule.Schedule, error)
	Runs(ctx context.Context, name string, before time.Time, limit int) ([]schedule.Run, error)
	Operate(ctx context.Context, act schedule.Act) error
}

// A Config is what the API works with.
type Config struct {
	Reports    ReportStore
	Comments   CommentStore // nil in a city whose residents write none
	Photos     PhotoStore
	Files      Files // nil in a city whose reports have no photos
	Moderation ModerationStore
	Workbench  WorkbenchStore
	Duplicates DuplicateStore
	Deadlines  DeadlineStore

	Outbox        Outbox
	Relay         Relay
	History       func(ctx context.Context, span time.Duration) (history.History, error) // of the outbox
	Erasures      Eraser
	Schedules     Schedules
	ScheduleAudit func(ctx context.Context, limit int) ([]schedule.Act, error)

	Auth    *auth.Verifier
	Health  *service.Health
	Metrics *prometheus.Registry
	Log     zerolog.Logger

	// City is where reports may be; everywhere if it is nil.
	City *report.Box

	// How often a user may file reports, or report abuse, vote, and comment.
	ReportsPerUser, VotesPerUser, CommentsPerUser ratelimit.Limit
}

// A server answers the operations of the document.
type server struct {
	Config
	uploads *rate.Limiter // bytes
}

// openapiYAML is a copy of docs/openapi/report-service.yaml, which cannot be
// embedded from here; `go generate` makes it and a test compares the two.
//
//go:embed openapi.yaml
var openapiYAML []byte

// formats are the formats of strings that only this document names.
var formats = openapi.Formats{
	"bbox":     func(s string) error { _, err := report.ParseBox(s); return err },
	"cursor":   func(s string) error { _, err := report.ParseCursor(s); return err },
	"if-match": func(s string) error { _, err := report.ParseIfMatch(s); return err },
}

// photoUpload is the one request that is larger than a text.
var photoUpload = service.Upload{
	Method: http.MethodPut, Path: regexp.MustCompile(`^/reports/[^/]+/photos/[^/]+$`), MaxBytes: report.MaxPhotoBytes,
}

// New returns the handler of the whole API.
func New(cfg Config) (http.Handler, error) {
	doc, err := openapi.Load(openapiYAML, formats)
	if err != nil {
		return nil, err
	}
	r := service.NewRouter(doc.Version(), cfg.Log, cfg.Metrics, cfg.Health, photoUpload)
	r.Method(http.MethodGet, "/openapi.json", doc)

	s := &server{cfg, rate.NewLimiter(uploadRate, uploadBurst)}
	r.Group(func(r chi.Router) {
		r.Use(cfg.Auth.Middleware)
		err = doc.Mount(r, s.handlers(), service.Errors{Log: cfg.Log, Problems: problems})
	})
	return r, err
}

// handlers has a handler for each operation of the document.
func (s *server) handlers() openapi.Handlers {
	reports, votes, abuse := ratelimit.New(s.ReportsPerUser), ratelimit.New(s.VotesPerUser), ratelimit.New(s.ReportsPerUser)
	handlers := openapi.Handlers{
		"listCategories":   s.listCategories,
		"listReports":      s.listReports,
		"createReport":     limited(reports, s.createReport),
		"listMyReports":    s.listMyReports,
		"listMapPoints":    s.listMapPoints,
		"getReport":        s.getReport,
		"getReportHistory": s.getHistory,
		"previewReport":    s.previewReport,
		"changeStatus":     s.changeStatus,
		"vote":             limited(votes, s.vote),
		"withdrawVote":     limited(votes, s.withdrawVote),
		"createDevToken":   s.Auth.IssueDevToken,

		"listQueue":       s.listQueue,
		"countQueue":      s.countQueue,
		"getWork":         s.getWork,
		"assignReport":    s.assignReport,
		"addNote":         s.addNote,
		"moveReports":     s.moveReports,
		"listBulkMoves":   s.listBulkMoves,
		"setDuplicate":    s.setDuplicate,
		"unsetDuplicate":  s.unsetDuplicate,
		"listTemplates":   s.listTemplates,
		"setTemplates":    s.setTemplates,
		"exportReports":   s.exportReports,
		"countOverTime":   s.countOverTime,
		"listDepartments": s.listDepartments,
		"setDepartments":  s.setDepartments,

		"hideReport":   s.hideReport,
		"unhideReport": s.unhideReport,
		"redactReport": s.redactReport,
		"reportAbuse":  limited(abuse, s.reportAbuse),
		"dismissAbuse": s.dismissAbuse,
		"listAbuse":    s.listAbuse,

		"putPhoto":       s.withFiles(s.putPhoto),
		"listPhotos":     s.listPhotos,
		"removePhoto":    s.removePhoto,
		"showPhoto":      s.showPhoto,
		"redactPhoto":    s.withFiles(s.redactPhoto),
		"listHeldPhotos": s.listHeldPhotos,
		"getPicture":     s.withFiles(s.getPicture),

		"outboxStats":          s.outboxStats,
		"outboxHistory":        s.outboxHistory,
		"listOutboxMessages":   s.listOutbox,
		"retryOutboxMessage":   s.retryOutbox,
		"retryOutboxMessages":  s.retryAllOutbox,
		"discardOutboxMessage": s.discardOutbox,
		"outboxAudit":          s.outboxAudit,

		"requestErasure": s.requestErasure,
		"listErasures":   s.listErasures,

		"getCalendar":  s.getCalendar,
		"setCalendar":  s.setCalendar,
		"setWaiting":   s.setWaiting,
		"unsetWaiting": s.unsetWaiting,

		"listSchedules":    s.listSchedules,
		"listScheduleRuns": s.listScheduleRuns,
		"pauseSchedule":    s.operateSchedule(schedule.Pause),
		"resumeSchedule":   s.operateSchedule(schedule.Resume),
		"runSchedule":      s.operateSchedule(schedule.RunAgain),
		"auditSchedules":   s.auditSchedules,
	}
	maps.Copy(handlers, s.commentHandlers())
	for id, h := range handlers {
		switch id {
		case "exportReports", "putPhoto": // they take as long as their client
		case "createReport", "changeStatus", "vote", "withdrawVote", "moveReports", "removePhoto", "showPhoto",
			"hideReport", "unhideReport", "redactReport", "addComment", "hideComment", "showComment":
			handlers[id] = service.Timeout(changeTimeout, h)
		default:
			handlers[id] = service.Timeout(service.DefaultTimeout, h)
		}
	}
	return handlers
}

// limited refuses what a user does more often than l has it. What failed does
// not count: somebody who repeats what an outage refused is not punished for it.
func limited(l *ratelimit.Limiter, h service.HandlerFunc) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		user := readerID(r)
		if wait := l.Take(user); wait > 0 {
			problem := service.TooManyRequests
			problem.RetryAfter = wait
			return problem.New("too many of this user")
		}
		err := h(w, r)
		if err != nil {
			l.GiveBack(user)
		}
		return err
	}
}
