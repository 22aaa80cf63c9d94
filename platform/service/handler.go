package service

import (
	"context"
	"errors"
	"net/http"

	"github.com/rs/zerolog"
)

// A HandlerFunc is an HTTP handler that returns what went wrong. It must not
// have written anything when it does.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Errors turns the errors of handlers into answers: the one place where they
// are told to the client and written to the log.
type Errors struct {
	// Log gets the errors that are ours.
	Log zerolog.Logger
	// Translate maps the failures of the domain to problems, with ok false
	// for whatever it does not know. It may be nil.
	Translate func(error) (p Problem, ok bool)
}

// Handle adapts h. A Problem is answered as it stands, a domain failure as
// Translate says, a body over its limit with 413. Anything else is logged,
// and the client reads only "internal error".
func (e Errors) Handle(h HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			WriteProblem(w, r, e.problem(r, err))
		}
	}
}

func (e Errors) problem(r *http.Request, err error) Problem {
	if p, ok := problemOf(err); ok {
		return p
	}
	if e.Translate != nil {
		if p, ok := e.Translate(err); ok {
			return p
		}
	}
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		requestEvent(e.Log.Debug(), r).Msg("client left") // nobody reads the answer
		return Unavailable.New("the request was cancelled")
	}
	requestEvent(e.Log.Error(), r).Err(err).Msg("request failed")
	return Internal.New("")
}
