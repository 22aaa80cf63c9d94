package service

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
)

// problemBase is where the problems are explained; the type of each is an anchor on
// that page, which the page's service has. The address is a path (RFC 9457, 3.1.1): it
// leads there at any city's gateway, and is the same text at each.
const problemBase = "/docs/problems#"

// A Problem is the body of an error answer, RFC 9457 problem details. It is
// an error, so that a handler can return it.
type Problem struct {
	Type    string       `json:"type"`
	Title   string       `json:"title"`
	Status  int          `json:"status"`
	Detail  string       `json:"detail,omitempty"`
	Errors  []FieldError `json:"errors,omitempty"`
	TraceID string       `json:"trace_id,omitempty"` // filled in by WriteProblem

	retryAfter time.Duration
}

// A FieldError names one fault of the request by a JSON pointer into its
// body (RFC 6901), or by the name of a parameter or header.
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
	Code    string `json:"code,omitempty"` // for programs, where there is one
}

// RetryAfter returns in how long the same request may succeed; zero if that is unknown.
func (p Problem) RetryAfter() time.Duration { return p.retryAfter }

// Error returns the problem in one line.
func (p Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// A ProblemType is what all occurrences of a problem have in common. Each is
// documented in docs/problems.md under its name.
type ProblemType struct {
	Status int
	Name   string // lower case with hyphens, the end of the type's URI
	Title  string
	// RetryAfter is when the same request may succeed, in whole seconds; zero
	// if that is unknown. It is sent as the header Retry-After (RFC 9110, 10.2.3).
	RetryAfter time.Duration
}

// The problems that both services know. A service adds its own.
var (
	InvalidInput         = ProblemType{Status: http.StatusBadRequest, Name: "invalid-input", Title: "The request is not valid"}
	MalformedBody        = ProblemType{Status: http.StatusBadRequest, Name: "malformed-body", Title: "The body is not valid JSON"}
	Unauthenticated      = ProblemType{Status: http.StatusUnauthorized, Name: "unauthenticated", Title: "Sign in first"}
	InvalidToken         = ProblemType{Status: http.StatusUnauthorized, Name: "invalid-token", Title: "The token is not accepted"}
	Forbidden            = ProblemType{Status: http.StatusForbidden, Name: "forbidden", Title: "Your role does not allow this"}
	CrossSite            = ProblemType{Status: http.StatusForbidden, Name: "cross-site", Title: "The request came from another site"}
	NotFound             = ProblemType{Status: http.StatusNotFound, Name: "not-found", Title: "There is nothing here"}
	MethodNotAllowed     = ProblemType{Status: http.StatusMethodNotAllowed, Name: "method-not-allowed", Title: "The method is not allowed here"}
	RequestTimeout       = ProblemType{Status: http.StatusRequestTimeout, Name: "request-timeout", Title: "The request took too long to arrive"}
	Conflict             = ProblemType{Status: http.StatusConflict, Name: "conflict", Title: "Not in this state"}
	BodyTooLarge         = ProblemType{Status: http.StatusRequestEntityTooLarge, Name: "body-too-large", Title: "The body is too large"}
	UnsupportedMediaType = ProblemType{Status: http.StatusUnsupportedMediaType, Name: "unsupported-media-type", Title: "The content type is not supported"}
	TooManyRequests      = ProblemType{Status: http.StatusTooManyRequests, Name: "too-many-requests", Title: "Too many requests"}
	Internal             = ProblemType{Status: http.StatusInternalServerError, Name: "internal", Title: "Internal error"}
	Unavailable          = ProblemType{Status: http.StatusServiceUnavailable, Name: "unavailable", Title: "Not available right now", RetryAfter: 2 * time.Second}
)

// New returns an occurrence of t. The detail is for the client's eyes.
func (t ProblemType) New(detail string, faults ...FieldError) Problem {
	return Problem{
		Type: t.URI(), Title: t.Title, Status: t.Status, Detail: detail, Errors: faults, retryAfter: t.RetryAfter,
	}
}

// URI returns the type member of t's problems.
func (t ProblemType) URI() string { return problemBase + t.Name }

// WriteProblem answers r with p and the trace id of r in the log.
func WriteProblem(w http.ResponseWriter, r *http.Request, p Problem) {
	p.TraceID = TraceID(r.Context())
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // a Problem holds strings and numbers only
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Del("Content-Length") // of an answer that was not to be
	header.Del("ETag")
	if p.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // fails if the client has left
}

// NotFoundHandler answers every request with the problem NotFound.
func NotFoundHandler(w http.ResponseWriter, r *http.Request) {
	WriteProblem(w, r, NotFound.New("no such path"))
}

// methods are those that a path may know.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions,
}

// MethodNotAllowedHandler answers every request with the problem
// MethodNotAllowed and the methods that chi's routes have for the path. Where a
// fixed route and one with a parameter match, the path is the fixed one's:
// /notifications/stream is no /notifications/{id}. Where no method has a route, it
// answers NotFound.
func MethodNotAllowedHandler(w http.ResponseWriter, r *http.Request) {
	if rc := chi.RouteContext(r.Context()); rc != nil && rc.Routes != nil {
		var fixed, withParameter []string
		for _, m := range methods {
			found := chi.NewRouteContext()
			switch {
			case !rc.Routes.Match(found, m, r.URL.EscapedPath()):
			case len(found.URLParams.Keys) == 0:
				fixed = append(fixed, m)
			default:
				withParameter = append(withParameter, m)
			}
		}
		allowed := fixed
		if len(fixed) == 0 {
			allowed = withParameter
		}
		if len(allowed) == 0 { // chi does not know the method, and nothing is there for others
			NotFoundHandler(w, r)
			return
		}
		for _, m := range allowed {
			w.Header().Add("Allow", m)
			if m == http.MethodGet {
				w.Header().Add("Allow", http.MethodHead) // see NewRouter
			}
		}
	}
	WriteProblem(w, r, MethodNotAllowed.New(""))
}
