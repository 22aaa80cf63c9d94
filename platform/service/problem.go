package service

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// problemBase is where the problems are documented; the type of each is an
// anchor on that page.
const problemBase = "https://github.com/cityconnect/cityconnect/blob/main/docs/problems.md#"

// A Problem is the body of an error answer, RFC 9457 problem details. It is
// an error, so that a handler can return it.
type Problem struct {
	Type    string       `json:"type"`
	Title   string       `json:"title"`
	Status  int          `json:"status"`
	Detail  string       `json:"detail,omitempty"`
	Errors  []FieldError `json:"errors,omitempty"`
	TraceID string       `json:"trace_id,omitempty"` // filled in by WriteProblem
}

// A FieldError names one fault of the request by a JSON pointer into its
// body (RFC 6901), or by the name of a parameter or header.
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

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
}

// The problems that both services know. A service adds its own.
var (
	InvalidInput         = ProblemType{http.StatusBadRequest, "invalid-input", "The request is not valid"}
	MalformedBody        = ProblemType{http.StatusBadRequest, "malformed-body", "The body is not valid JSON"}
	Unauthenticated      = ProblemType{http.StatusUnauthorized, "unauthenticated", "Sign in first"}
	InvalidToken         = ProblemType{http.StatusUnauthorized, "invalid-token", "The token is not accepted"}
	Forbidden            = ProblemType{http.StatusForbidden, "forbidden", "Your role does not allow this"}
	CrossSite            = ProblemType{http.StatusForbidden, "cross-site", "The request came from another site"}
	NotFound             = ProblemType{http.StatusNotFound, "not-found", "There is nothing here"}
	MethodNotAllowed     = ProblemType{http.StatusMethodNotAllowed, "method-not-allowed", "The method is not allowed here"}
	BodyTooLarge         = ProblemType{http.StatusRequestEntityTooLarge, "body-too-large", "The body is too large"}
	UnsupportedMediaType = ProblemType{http.StatusUnsupportedMediaType, "unsupported-media-type", "The content type is not supported"}
	Internal             = ProblemType{http.StatusInternalServerError, "internal", "Internal error"}
	Unavailable          = ProblemType{http.StatusServiceUnavailable, "unavailable", "Not available right now"}
)

// New returns an occurrence of t. The detail is for the client's eyes.
func (t ProblemType) New(detail string, faults ...FieldError) Problem {
	return Problem{Type: t.URI(), Title: t.Title, Status: t.Status, Detail: detail, Errors: faults}
}

// URI returns the type member of t's problems.
func (t ProblemType) URI() string { return problemBase + t.Name }

// WriteProblem answers r with p and the trace id by which the log knows r.
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
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that left is no fault of ours
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
// MethodNotAllowed and the methods that chi's routes have for the path.
func MethodNotAllowedHandler(w http.ResponseWriter, r *http.Request) {
	if rc := chi.RouteContext(r.Context()); rc != nil && rc.Routes != nil {
		for _, m := range methods {
			if rc.Routes.Match(chi.NewRouteContext(), m, r.URL.EscapedPath()) {
				w.Header().Add("Allow", m)
			}
		}
	}
	WriteProblem(w, r, MethodNotAllowed.New(""))
}

// problemOf returns what the client may know of err. ok is false when that is
// only "internal error".
func problemOf(err error) (p Problem, ok bool) {
	if p, ok := errors.AsType[Problem](err); ok {
		return p, true
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return bodyTooLarge(tooLarge.Limit), true
	}
	return Problem{}, false
}
