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
	"io"
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
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/ratelimit"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// changeTimeout is how long a change may wait until it is decided. Most clients
// have given up by then, and may have sent something else since. What the
// process finds after it was frozen is refused as well.
const changeTimeout = 5 * time.Second

// A Store keeps reports.
type Store interface {
	Categories(ctx context.Context) ([]report.Category, error)
	Category(ctx context.Context, id int32) (report.Category, error)
	Create(ctx context.Context, f *report.Filing, idempotent *report.Idempotent) (earlier report.StoredResponse, err error)
	Get(ctx context.Context, id uuid.UUID, reader report.Reader) (report.View, error)
	History(ctx context.Context, id uuid.UUID, reader report.Reader) ([]report.Change, error)
	List(ctx context.Context, f report.Filter, after *report.Cursor, limit int, reader string) (report.Page, error)
	Map(ctx context.Context, f report.Filter, grid report.Grid, maxPoints int) (report.Map, error)
	Move(ctx context.Context, id uuid.UUID, m report.Move) (report.View, error)
	Vote(ctx context.Context, id uuid.UUID, b report.Ballot) (report.Tally, error)
	Complain(ctx context.Context, id uuid.UUID, c report.Complaint, userID string) error
	Comment(ctx context.Context, c *report.WrittenComment, idempotent *report.Idempotent) (earlier report.StoredResponse, err error)
	Comments(ctx context.Context, reportID uuid.UUID, after *report.Cursor, limit int, reader report.Reader) (report.CommentPage, error)

	// For officials.
	Queue(ctx context.Context, f report.Filter, after *report.Cursor, limit int) (report.Queue, error)
	Counts(ctx context.Context, f report.Filter) (report.Counts, error)
	Work(ctx context.Context, id uuid.UUID) (report.Work, error)
	Assign(ctx context.Context, id uuid.UUID, a report.Assignment, by report.Official) error
	Note(ctx context.Context, id uuid.UUID, text string, by report.Official) error
	BeginBulkMove(ctx context.Context, m report.BulkMove, idempotent *report.Idempotent) (id int64, earlier report.StoredResponse, err error)
	EndBulkMove(ctx context.Context, id int64, refused []uuid.UUID, idempotent *report.Idempotent) error
	BulkMoves(ctx context.Context, limit int) ([]report.BulkMove, error)
	Numbers(ctx context.Context, f report.Filter, interval report.Interval) ([]report.Number, error)
	SetDuplicate(ctx context.Context, id, original uuid.UUID, by report.Official) error
	Templates(ctx context.Context) ([]report.Template, error)
	SetTemplates(ctx context.Context, templates []report.Template) error
	Calendar(ctx context.Context) (calendar.Calendar, error)
	SetCalendar(ctx context.Context, c calendar.Calendar, targets map[int32]time.Duration) error
	SetWaiting(ctx context.Context, id uuid.UUID, waiting bool, reason string, by report.Official) error
	Hide(ctx context.Context, id uuid.UUID, reason string, ifMatch report.Versions, by report.Official) error
	Unhide(ctx context.Context, id uuid.UUID, ifMatch report.Versions, by report.Official) error
	Redact(ctx context.Context, id uuid.UUID, r report.Rewording, by report.Official) error
	HideComment(ctx context.Context, reportID, id uuid.UUID, reason string, by report.Official) error
	ShowComment(ctx context.Context, reportID, id uuid.UUID, by report.Official) error
	Suspects(ctx context.Context, limit int) ([]report.Suspect, error)
	DismissComplaints(ctx context.Context, id uuid.UUID, by report.Official) error
	Departments(ctx context.Context) ([]report.Department, error)
	SetDepartments(ctx context.Context, departments []report.Department) error

	// For operators.
	ScheduleAudit(ctx context.Context, limit int) ([]schedule.Act, error)

	// Of photos.
	CheckUpload(ctx context.Context, reportID, photoID uuid.UUID, by report.PhotoUser) error
	AddPhoto(ctx context.Context, u report.Upload, by report.PhotoUser) (p report.Photo, added bool, err error)
	Photos(ctx context.Context, reportID uuid.UUID, by report.PhotoUser) ([]report.Photo, error)
	Photo(ctx context.Context, id uuid.UUID, by report.PhotoUser) (report.Photo, error)
	HeldPhotos(ctx context.Context, limit int) ([]report.Photo, error)
	RemovePhoto(ctx context.Context, reportID, id uuid.UUID, by report.PhotoUser) error
	ShowPhoto(ctx context.Context, reportID, id uuid.UUID, by report.PhotoUser) error
	ReplacePhoto(ctx context.Context, reportID, id uuid.UUID, redacted report.Photo, by report.PhotoUser) (report.Photo, error)
}

// Files keep what is uploaded, and the pictures that are served.
type Files interface {
	Put(ctx context.Context, key string, r io.Reader, size int64) error
	Get(ctx context.Context, key string, limit int64) ([]byte, error)
	Delete(ctx context.Context, key string) error
}

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
	Store     Store
	Files     Files // nil in a city whose reports have no photos
	Outbox    Outbox
	Relay     Relay
	History   func(ctx context.Context, span time.Duration) (history.History, error) // of the outbox
	Erasures  Eraser
	Schedules Schedules
	Auth      *auth.Verifier
	Health    *service.Health
	Metrics   *prometheus.Registry
	Log       zerolog.Logger

	// City is where reports may be; everywhere if it is nil.
	City *report.Box

	// Comments says whether residents comment on reports in this city.
	Comments bool

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
		err = doc.Mount(r, service.Errors{Log: cfg.Log, Problems: problems}, s.operations())
	})
	return r, err
}

// operations answer the operations of the document.
func (s *server) operations() openapi.Operations {
	reports, votes, abuse := ratelimit.New(s.ReportsPerUser), ratelimit.New(s.VotesPerUser), ratelimit.New(s.ReportsPerUser)
	handlers := map[string]service.HandlerFunc{
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
	operations := make(openapi.Operations, len(handlers))
	for id, h := range handlers {
		switch id {
		case "exportReports", "putPhoto": // they take as long as their client
			operations[id] = service.Operation{Handler: h, Timeout: service.Unlimited}
		case "createReport", "changeStatus", "vote", "withdrawVote", "moveReports", "removePhoto", "showPhoto",
			"hideReport", "unhideReport", "redactReport", "addComment", "hideComment", "showComment":
			operations[id] = service.Operation{Handler: h, Timeout: changeTimeout}
		default:
			operations[id] = service.Operation{Handler: h, Timeout: service.DefaultTimeout}
		}
	}
	return operations
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
