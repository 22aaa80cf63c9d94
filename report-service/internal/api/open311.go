package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/open311"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// An ApplicationStore keeps the applications that file reports by Open311.
type ApplicationStore interface {
	open311.Store
	Applications(ctx context.Context) ([]report.Application, error)
	Add(ctx context.Context, a report.Application, hash []byte, by report.Official) error
	Revoke(ctx context.Context, id uuid.UUID, by report.Official) error
}

// An Open311 says how the city takes part in Open311.
type Open311 struct {
	On           bool // otherwise nothing is below /open311; operators may make keys all the same
	Applications ApplicationStore
	PerKey       ratelimit.Limit // how often each application may file
}

// handler returns the handler of all paths below /open311.
func (o Open311) handler(cfg Config, gates gates) (http.Handler, error) {
	return open311.New(open311.Config{
		Store: o.Applications, Filer: cfg.Reports, Categories: cfg.Categories, CityName: cfg.CityName, Language: cfg.Languages[0], City: cfg.City,
		PerKey: o.PerKey, Errors: service.Errors{Log: cfg.Log, Problems: problems}, Origin: origin,
		Costly: func(ctx context.Context, r *http.Request, work func(ctx context.Context) error) error {
			return gates.do(ctx, r, work)
		},
	})
}

func (o Open311) operations() operations {
	return operations{
		"listOpen311Keys":  {Handler: o.list, Timeout: service.DefaultTimeout},
		"makeOpen311Key":   {Handler: o.make, Timeout: service.DefaultTimeout},
		"revokeOpen311Key": {Handler: o.revoke, Timeout: service.DefaultTimeout},
	}
}

// list handles GET /admin/reports/open311/keys.
func (o Open311) list(w http.ResponseWriter, r *http.Request) error {
	applications, err := o.Applications.Applications(r.Context())
	if err != nil {
		return err
	}
	out := reportapi.Open311Keys{Enabled: o.On, Keys: make([]reportapi.Open311Key, len(applications))}
	for i, a := range applications {
		out.Keys[i] = reportapi.Open311Key{ID: a.ID, Name: a.Name, MadeAt: a.MadeAt, RevokedAt: orZero(a.RevokedAt), Reports: a.Reports}
	}
	return service.Encode(w, http.StatusOK, out)
}

// make handles POST /admin/reports/open311/keys.
func (o Open311) make(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.NewOpen311Key](r)
	if err != nil {
		return err
	}
	a := report.Application{ID: uuid.Must(uuid.NewV7()), Name: strings.TrimSpace(req.Name), MadeAt: time.Now().UTC().Truncate(time.Microsecond)}
	if a.Name == "" {
		return fault.NewInvalid("/name", "must not be blank")
	}
	key := report.NewKey()
	if err := o.Applications.Add(r.Context(), a, report.HashKey(key), caller(r).AsOfficial()); err != nil {
		return err
	}
	return service.Encode(w, http.StatusCreated, reportapi.MadeOpen311Key{ID: a.ID, Name: a.Name, MadeAt: a.MadeAt, Key: key})
}

// revoke handles DELETE /admin/reports/open311/keys/{id}.
func (o Open311) revoke(w http.ResponseWriter, r *http.Request) error {
	if err := o.Applications.Revoke(r.Context(), pathID(r), caller(r).AsOfficial()); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}
