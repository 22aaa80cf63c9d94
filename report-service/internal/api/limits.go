package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// limited refuses requests of a user beyond l. What fails by our fault does not count:
// users who repeat what an outage refused are not punished for it. A refusal counts, or
// it could be asked for without end.
func limited(l *ratelimit.Limiter, h service.HandlerFunc) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		return withTurn(l, user(r).ID, "too many requests of this user", func() error { return h(w, r) })
	}
}

// limitedForAll is limited for accounts. Clients without one are limited by their
// address, which is kept in memory alone: guests, too, since anybody becomes any number of them.
func limitedForAll(byUser, byAddress *ratelimit.Limiter, h service.HandlerFunc) service.HandlerFunc {
	signedIn := limited(byUser, h)
	return func(w http.ResponseWriter, r *http.Request) error {
		if by := user(r); by.ID != "" && !by.Guest {
			return signedIn(w, r)
		}
		return withTurn(byAddress, networkOf(r), "too many requests of this address", func() error { return h(w, r) })
	}
}

// withTurn does the work of a request if l has a turn of key.
func withTurn(l *ratelimit.Limiter, key, refusal string, work func() error) error {
	if wait := l.Take(key); wait > 0 {
		return refusedFor(wait, service.TooManyRequests, refusal)
	}
	err := work()
	if isOurs(err) {
		l.GiveBack(key)
	}
	return err
}

// refusedFor returns a problem of a request that may succeed after wait.
func refusedFor(wait time.Duration, problem service.ProblemType, detail string) error {
	problem.RetryAfter = wait
	return problem.New(detail)
}

// isOurs reports whether a request failed by our fault.
func isOurs(err error) bool {
	if problem, ok := errors.AsType[service.Problem](err); ok {
		return problem.Status >= http.StatusInternalServerError
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known.Kind == fault.Unavailable || known.Kind == report.StillRunning
	}
	return err != nil
}
