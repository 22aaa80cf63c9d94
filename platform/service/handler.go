package service

import (
	"context"
	"errors"
	"net/http"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A HandlerFunc is an HTTP handler that returns what went wrong. It must not
// have written anything when it does.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Errors turns the errors of handlers into answers. It is the one place where
// an error is judged and logged.
type Errors struct {
	// Log gets the errors that are ours.
	Log zerolog.Logger
	// Problems has the problem of each kind that the service adds to those of
	// package fault. It may be nil.
	Problems map[fault.Kind]ProblemType
}

// problems are those of the kinds that every domain knows.
var problems = map[fault.Kind]ProblemType{
	fault.Invalid:     InvalidInput,
	fault.NotFound:    NotFound,
	fault.Conflict:    Conflict,
	fault.Unavailable: Unavailable,
}

// Handle adapts h. A Problem is answered as it is, a fault.Error by its kind,
// a body over its limit with 413, and a database that is away or busy with 503.
// Anything else is logged, and the client reads only "internal error".
func (e Errors) Handle(h HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			WriteProblem(w, r, e.Problem(r, err))
		}
	}
}

// Problem returns the answer to the request r that failed with err, and logs err if it
// is ours.
func (e Errors) Problem(r *http.Request, err error) Problem {
	if p, ok := errors.AsType[Problem](err); ok {
		return p
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		if kind, ok := e.problemType(known.Kind); ok {
			if known.Kind == fault.Unavailable {
				requestEvent(e.Log.Warn(), r).Err(err).Msg("request refused, the client may repeat it")
			}
			if known.Field != "" {
				return kind.New("", FieldError{Pointer: known.Field, Detail: known.Msg})
			}
			return kind.New(known.Msg)
		}
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return bodyTooLarge(tooLarge.Limit)
	}
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		requestEvent(e.Log.Debug(), r).Msg("client left") // the answer has no reader
		return Unavailable.New("the request was cancelled")
	}
	switch class := pgpool.Classify(err); class {
	case pgpool.Away, pgpool.Busy:
		// The error's own text names the server and its user.
		requestEvent(e.Log.Warn(), r).Str("error", pgpool.Describe(err)).Msg("database unavailable, the client may repeat the request")
		return Unavailable.New("the database is " + string(class))
	}
	requestEvent(e.Log.Error(), r).Err(err).Msg("request failed")
	return Internal.New("")
}

func (e Errors) problemType(kind fault.Kind) (ProblemType, bool) {
	if t, ok := e.Problems[kind]; ok {
		return t, true
	}
	t, ok := problems[kind]
	return t, ok
}
