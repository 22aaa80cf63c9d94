package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/open311"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Open311 is how the city takes part in Open311.
type Open311 struct {
	City
	On           bool // otherwise nothing is below /open311; operators may make keys all the same
	Applications *postgres.Open311
	PerKey       ratelimit.Limit // how often each application may file
	Connections  Connections     // whose updates it takes
	Reports      *postgres.Reports
	Gates        Gates
}

// Handler returns the handler of all paths below /open311; nil if it is off.
func (h Open311) Handler(log zerolog.Logger) (http.Handler, error) {
	if !h.On {
		return nil, nil
	}
	return open311.New(open311.Config{
		Store: h.Applications, Filer: h.Reports, Categories: h.Categories, CityName: h.Name, Languages: h.Languages, City: h.Bounds,
		PerKey: h.PerKey, Errors: service.Errors{Log: log, Problems: problems}, Origin: origin, Costly: h.Gates.do, Connection: h.Connections.authenticate,
		AreaAt: h.Areas.At,
	})
}

// Operations are those on the keys of applications.
func (h Open311) Operations() openapi.Operations {
	return openapi.Operations{
		"listOpen311Keys":  {Handler: answered(h.list), Timeout: service.DefaultTimeout},
		"makeOpen311Key":   {Handler: service.Decoded(h.make), Timeout: service.DefaultTimeout},
		"revokeOpen311Key": {Handler: h.revoke, Timeout: service.DefaultTimeout},
	}
}

// list handles GET /admin/reports/open311/keys.
func (h Open311) list(r *http.Request) (reportapi.Open311Keys, error) {
	applications, err := h.Applications.Applications(r.Context())
	return reportapi.Open311Keys{Enabled: h.On, Keys: service.Each(applications, func(a report.Application) reportapi.Open311Key {
		return reportapi.Open311Key{ID: a.ID, Name: a.Name, MadeAt: a.MadeAt, RevokedAt: service.OrZero(a.RevokedAt), Reports: a.Reports}
	})}, err
}

// make handles POST /admin/reports/open311/keys.
func (h Open311) make(w http.ResponseWriter, r *http.Request, req reportapi.NewOpen311Key) error {
	a := report.Application{ID: uuid.Must(uuid.NewV7()), Name: strings.TrimSpace(req.Name), MadeAt: time.Now().UTC().Truncate(time.Microsecond)}
	if a.Name == "" {
		return fault.NewInvalid("/name", "must not be blank")
	}
	key := report.NewKey()
	if err := h.Applications.Add(r.Context(), a, report.HashKey(key), user(r).AsOfficial()); err != nil {
		return err
	}
	return service.Encode(w, http.StatusCreated, reportapi.MadeOpen311Key{ID: a.ID, Name: a.Name, MadeAt: a.MadeAt, Key: key})
}

// revoke handles DELETE /admin/reports/open311/keys/{id}.
func (h Open311) revoke(w http.ResponseWriter, r *http.Request) error {
	if err := h.Applications.Revoke(r.Context(), pathID(r), user(r).AsOfficial()); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return service.NoContent(w)
}
