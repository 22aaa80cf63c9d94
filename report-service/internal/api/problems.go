package api

import (
	"errors"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// problems are the kinds of failures as the client sees them.
var problems = map[report.Kind]service.ProblemType{
	report.Invalid:           service.InvalidInput,
	report.NotFound:          service.NotFound,
	report.OwnReport:         {Status: http.StatusForbidden, Name: "own-report", Title: "The report is your own"},
	report.Closed:            {Status: http.StatusConflict, Name: "report-closed", Title: "The report is closed"},
	report.IllegalTransition: {Status: http.StatusConflict, Name: "illegal-transition", Title: "The status does not lead there"},
	report.Stale:             {Status: http.StatusPreconditionFailed, Name: "stale-version", Title: "The report has changed"},
	report.KeyReused:         {Status: http.StatusUnprocessableEntity, Name: "idempotency-key-reused", Title: "The key stands for another request"},
	report.StillRunning:      {Status: http.StatusConflict, Name: "request-running", Title: "The same request is running"},
	report.Unavailable:       service.Unavailable,
}

// translate maps the failures of the domain to problems.
func translate(err error) (service.Problem, bool) {
	e, ok := errors.AsType[*report.Error](err)
	if !ok {
		return service.Problem{}, false
	}
	kind, ok := problems[e.Kind]
	if !ok {
		return service.Problem{}, false
	}
	if e.Field != "" {
		return kind.New("", service.FieldError{Pointer: e.Field, Detail: e.Msg}), true
	}
	return kind.New(e.Msg), true
}

// noted adds to an answer of h, and to the log, what a problem cannot carry.
func (s *server) noted(h service.HandlerFunc) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := postgres.Translate(h(w, r))
		switch report.KindOf(err) {
		case report.Unavailable:
			s.Log.Warn().Err(err).Str("trace_id", service.TraceID(r.Context())).Msg("database unavailable")
			w.Header().Set("Retry-After", "2")
		case report.StillRunning:
			w.Header().Set("Retry-After", "1")
		}
		return err
	}
}
