// Package open311 lets applications of others read and file reports by Open311
// GeoReport v2 (wiki.open311.org/GeoReport_v2), as FixMyStreet and other clients do.
// docs/openapi/open311.yaml describes it.
//
// It reads what everybody may see, and nothing else. What it files is anonymous to all:
// no person whom the service knows has filed it, and what the sender says of one is
// dropped before anything is stored. Errors have the form of Open311 and not that of the
// rest of the API.
package open311

import (
	"context"
	"crypto/sha256"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/docs"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A Store has the applications, and what they read.
type Store interface {
	Application(ctx context.Context, hash []byte) (uuid.UUID, error)
	Requests(ctx context.Context, q report.RequestQuery) ([]report.ServiceRequest, error)
	Updates(ctx context.Context, q report.UpdateQuery) ([]report.RequestUpdate, error)
}

// A Filer keeps what is filed, and what departments' systems say of it.
type Filer interface {
	Create(ctx context.Context, f *report.Filing, idempotent *report.Idempotent) (earlier report.StoredResponse, err error)
	Update(ctx context.Context, id uuid.UUID, m report.Move, update [sha256.Size]byte) (version int64, err error)
	Asset(ctx context.Context, key string) (report.Asset, *report.Position, error)
}

// Categories are the city's categories, which are the services of Open311.
type Categories interface {
	List(ctx context.Context) (report.CategoryList, error)
}

// A Config is what the handlers need.
type Config struct {
	Store      Store
	Filer      Filer
	Categories Categories
	CityName   string
	Languages  []string        // the city's, the first one first
	City       *report.Box     // where reports may be; everywhere if it is nil
	PerKey     ratelimit.Limit // how often an application may file
	Errors     service.Errors

	// Connection returns the connection with a key, for which it takes a turn.
	Connection func(ctx context.Context, key string) (report.User, error)
	// AreaAt returns the area of a place, which may be nil.
	AreaAt func(ctx context.Context, p *report.Position) (report.Area, error)
	// Costly does the work of a list, whose price the client pays.
	Costly func(ctx context.Context, r *http.Request, work func(ctx context.Context) error) error
	// Origin returns the address of the city as the client writes it.
	Origin func(r *http.Request) string
}

type handlers struct {
	Config
	filing *ratelimit.Limiter // by application
}

// New returns the handler of all paths below /open311.
func New(cfg Config) (http.Handler, error) {
	doc, err := openapi.Load(docs.Read("openapi/open311.yaml"), nil)
	if err != nil {
		return nil, err
	}
	h := handlers{cfg, ratelimit.New(cfg.PerKey)}
	r := chi.NewRouter()
	r.Method(http.MethodGet, "/openapi.json", doc)
	for path, get := range map[string]endpoint{
		"/discovery":   h.discovery,
		"/v2/services": h.services, "/v2/services/{id}": h.definition,
		"/v2/requests": h.requests, "/v2/requests/{id}": h.request, "/v2/tokens/{id}": h.token,
		"/v2/servicerequestupdates": h.updates,
	} {
		r.Get(path+formats, h.handle(get))
	}
	r.Post("/v2/requests"+formats, h.handle(h.file))
	r.Post("/v2/servicerequestupdates"+formats, h.handle(h.update))
	r.NotFound(h.handle(func(*http.Request) (any, error) {
		return nil, refuse(http.StatusNotFound, "there is nothing at this address")
	}))
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		allow := "GET, HEAD"
		if strings.Contains(r.URL.Path, "/v2/requests.") || strings.Contains(r.URL.Path, "/v2/servicerequestupdates.") {
			allow += ", POST"
		}
		w.Header().Set("Allow", allow)
		h.handle(func(*http.Request) (any, error) {
			return nil, refuse(http.StatusMethodNotAllowed, "the method is not allowed here")
		})(w, r)
	})
	return r, nil
}

// An endpoint returns what a request is answered with, in any format.
type endpoint func(r *http.Request) (any, error)

// timeout bounds what a request may wait for the database. A client that gives up before
// sends the same request again, and gets the same answer.
const timeout = 10 * time.Second

// handle answers requests in the format that their path ends in. Whatever a client may
// read it may keep, and has to ask before each use whether it still holds: a report may be
// hidden at any moment. The tag is weak, as the gateway makes each that it compresses.
func (h handlers) handle(get endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		r = r.WithContext(ctx)
		f := formatOf(r)
		content, err := get(r)
		var body []byte
		if err == nil {
			body, err = f.encode(content)
		}
		if err != nil {
			h.fail(w, r, f, err)
			return
		}
		w.Header().Set("Content-Type", f.contentType())
		if r.Method == http.MethodPost {
			w.Header().Set("Cache-Control", "no-store")
		} else if service.AnsweredBefore(w, r, "W/"+service.Tag(body)) {
			return
		}
		_, _ = w.Write(body) // the client may have left
	}
}

// refuse returns an error that the client reads.
func refuse(status int, description string) error {
	return service.ProblemType{Status: status}.New(description)
}

// codes are the statuses that Open311 and its clients know beside 400 and those of
// failures of ours.
var codes = map[int]bool{
	http.StatusForbidden: true, http.StatusNotFound: true, http.StatusMethodNotAllowed: true,
	http.StatusRequestEntityTooLarge: true, http.StatusTooManyRequests: true,
}

// fail answers a request that failed with err.
func (h handlers) fail(w http.ResponseWriter, r *http.Request, f format, err error) {
	p := h.Errors.Problem(r, err)
	if p.Status < http.StatusInternalServerError && !codes[p.Status] {
		p.Status = http.StatusBadRequest
	}
	said := []string{}
	for _, fault := range p.Errors {
		said = append(said, strings.TrimPrefix(fault.Pointer, "/")+": "+fault.Detail)
	}
	if p.Detail != "" || len(said) == 0 {
		said = append([]string{strings.TrimPrefix(p.Error(), ": ")}, said...)
	}
	list := items[failure]{root: "errors", item: "error"}
	for _, description := range said {
		list.all = append(list.all, failure{p.Status, printable(description)})
	}
	body, err := f.encode(list)
	if err != nil {
		panic(err) // it is text and numbers
	}
	w.Header().Set("Content-Type", f.contentType())
	w.Header().Set("Cache-Control", "no-store")
	if wait := p.RetryAfter(); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client may have left
}
