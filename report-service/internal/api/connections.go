package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// perConnection is how often a connection may ask: more often than a system of work orders
// that reads every report of a large city each hour, and far below what a replica carries.
var perConnection = ratelimit.Limit{Turns: 1200, Period: time.Minute}

// Connections are the machines of departments.
type Connections struct {
	Store *postgres.Connections
	Firms Firms // whose links open what is theirs as keys do
	Gates Gates

	turns *ratelimit.Limiter // by connection
}

// NewConnections returns those in store, and firms.
func NewConnections(store *postgres.Connections, firms *postgres.Firms, gates Gates) Connections {
	return Connections{Store: store, Firms: NewFirms(firms), Gates: gates, turns: ratelimit.New(perConnection)}
}

// Operations are those on connections, and those that are theirs alone.
func (h Connections) Operations() openapi.Operations {
	return openapi.Operations{
		"listConnections":       {Handler: answered(h.list), Timeout: service.DefaultTimeout},
		"makeConnection":        {Handler: service.Decoded(h.make), Timeout: service.DefaultTimeout},
		"revokeConnection":      {Handler: h.revoke, Timeout: service.DefaultTimeout},
		"listConnectionReports": {Handler: h.listReports, Timeout: service.DefaultTimeout},
		"getConnectionReport":   {Handler: h.getReport, Timeout: service.DefaultTimeout},
		"setExternalRef":        {Handler: service.Decoded(h.setExternalRef), Timeout: changeTimeout},
	}
}

// connectionKey is that of the report.User that a connection or a firm is, in a request's context.
type connectionKey struct{}

// signIn puts the connection or firm into the context of a request with its key or link, and
// leaves all others to people. A key is looked up each time: a revoked one opens nothing.
func (h Connections) signIn(errs service.Errors, people func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		machines := errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
			_, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			role, authenticate := auth.Connection, h.authenticate
			if strings.HasPrefix(key, report.JobPrefix) {
				role, authenticate = auth.Firm, h.Firms.authenticate
			}
			connection, err := authenticate(r.Context(), key)
			if fault.KindOf(err) == fault.NotFound {
				w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
				return service.InvalidToken.New("the key must be of a connection of this city that is not revoked, or the link of a firm that has not ended")
			}
			if err != nil {
				return err
			}
			ctx := auth.With(r.Context(), auth.Principal{ID: connection.ID, Name: connection.Name, Role: role})
			next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, connectionKey{}, connection)))
			return nil
		})
		others := people(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			if strings.EqualFold(scheme, "Bearer") && (strings.HasPrefix(key, report.ConnectionPrefix) || strings.HasPrefix(key, report.JobPrefix)) {
				machines(w, r)
				return
			}
			others.ServeHTTP(w, r)
		})
	}
}

// authenticate returns the connection with a key, for which it takes a turn.
func (h Connections) authenticate(ctx context.Context, key string) (report.User, error) {
	connection, err := h.Store.ByKey(ctx, report.HashKey(key))
	if err != nil {
		return report.User{}, err
	}
	if wait := h.turns.Take(connection.ID.String()); wait > 0 {
		return report.User{}, refusedFor(wait, service.TooManyRequests, "too many requests of this connection")
	}
	return connection.User(), nil
}

// list handles GET /admin/reports/connections.
func (h Connections) list(r *http.Request) (reportapi.Connections, error) {
	all, err := h.Store.All(r.Context())
	return reportapi.Connections{Connections: service.Each(all, func(c report.Connection) reportapi.Connection {
		return reportapi.Connection{
			ID: c.ID, Name: c.Name, DepartmentID: c.Department.ID, DepartmentName: c.Department.Name, Private: c.Private,
			MadeAt: c.MadeAt, RevokedAt: service.OrZero(c.RevokedAt),
		}
	})}, err
}

// make handles POST /admin/reports/connections.
func (h Connections) make(w http.ResponseWriter, r *http.Request, req reportapi.NewConnection) error {
	c := report.Connection{
		ID: uuid.Must(uuid.NewV7()), Name: strings.TrimSpace(req.Name), Department: report.Department{ID: req.DepartmentID},
		Private: req.Private, MadeAt: time.Now().UTC().Truncate(time.Microsecond),
	}
	if c.Name == "" {
		return fault.NewInvalid("/name", "must not be blank")
	}
	key := report.NewConnectionKey()
	c, err := h.Store.Add(r.Context(), c, report.HashKey(key), user(r).AsOfficial())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusCreated, reportapi.MadeConnection{
		ID: c.ID, Name: c.Name, DepartmentID: c.Department.ID, DepartmentName: c.Department.Name, Private: c.Private, MadeAt: c.MadeAt, Key: key,
	})
}

// revoke handles DELETE /admin/reports/connections/{id}.
func (h Connections) revoke(w http.ResponseWriter, r *http.Request) error {
	if err := h.Store.Revoke(r.Context(), pathID(r), user(r).AsOfficial()); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return service.NoContent(w)
}

// listReports handles GET /reports/connection.
func (h Connections) listReports(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	q := report.ConnectedQuery{
		Statuses:   service.Each(values["status"], func(s string) report.Status { return report.Status(s) }),
		Unnumbered: values.Get("without_number") == "true", Limit: intParam(r, "limit"),
	}
	if values.Has("updated_from") {
		q.ChangedFrom = checked(func(s string) (time.Time, error) { return time.Parse(time.RFC3339, s) }, values.Get("updated_from"))
	}
	var err error
	if q.After, err = readCursor(r, func(c *report.Cursor) error { return c.Of(q.Filter()) }); err != nil {
		return err
	}
	var out reportapi.ConnectedReports
	err = h.Gates.do(r.Context(), r, func(ctx context.Context) error {
		reports, next, err := h.Store.List(ctx, q, user(r))
		out.Reports = service.Each(reports, connectedOf)
		if next != nil {
			out.NextCursor = next.String()
		}
		return err
	})
	if err != nil {
		return err
	}
	if out.NextCursor != "" {
		service.NextLink(w, r, out.NextCursor)
	}
	return service.Encode(w, http.StatusOK, out)
}

// getReport handles GET /reports/{id}/connection.
func (h Connections) getReport(w http.ResponseWriter, r *http.Request) error {
	c, err := h.Store.Report(r.Context(), pathID(r), user(r))
	if err != nil {
		return err
	}
	w.Header().Set("ETag", report.ETag(c.Version))
	return service.Encode(w, http.StatusOK, connectedOf(c))
}

// setExternalRef handles PUT /reports/{id}/external-ref.
func (h Connections) setExternalRef(w http.ResponseWriter, r *http.Request, req reportapi.NewExternalRef) error {
	ref := report.ExternalRef{Number: req.Number, URL: req.URL, State: req.State, At: time.Now().UTC()}
	if err := ref.Check(); err != nil {
		return err
	}
	idempotent, err := idempotentAt(r, req, "external-ref")
	if err != nil {
		return err
	}
	if err := h.Store.SetExternalRef(r.Context(), pathID(r), ref, user(r), idempotent); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return service.NoContent(w)
}

func connectedOf(c report.ConnectedReport) reportapi.ConnectedReport {
	out := reportapi.ConnectedReport{
		ID: c.ID, Number: report.Reference(c.ID), Title: c.Title, Description: c.Description,
		CategoryID: c.Category.ID, CategoryName: c.Category.Name, Area: c.Area.Code, Asset: c.Asset.Key, AssetName: c.Asset.Name, Address: c.Address,
		Visibility: reportapi.Visibility(c.Visibility), Status: reportapi.Status(c.Status), Transitions: service.Each(c.Status.Transitions(), transitionOf),
		Version: c.Version, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, Photos: orEmpty(c.Photos), ExternalRef: externalOf(c.External),
	}
	if c.Position != nil {
		out.Latitude, out.Longitude = &c.Position.Latitude, &c.Position.Longitude
	}
	return out
}

// externalOf returns nil for none.
func externalOf(e *report.ExternalRef) *reportapi.ExternalRef {
	if e == nil {
		return nil
	}
	return &reportapi.ExternalRef{Number: e.Number, URL: e.URL, State: e.State, System: e.System, SetAt: e.At.UTC()}
}
