// Package admin is the operators' side of notification-service over HTTP:
// dead letters, their replays, messages that wait until a time, and the worker
// pools.
//
// Who may use it, and what a request may contain, is decided before by the
// OpenAPI document. The package promises that no answer names a reporter or
// a voter.
package admin

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/openapi"
)

// An API answers the operators' operations.
type API struct {
	store   Store
	delayed Delayed
	pools   Pools
	checker Checker
}

// New returns an API on dead letters, delayed messages and worker pools.
func New(store Store, delayed Delayed, pools Pools, checker Checker) *API {
	return &API{store, delayed, pools, checker}
}

// Operations are those on dead letters, delayed messages and worker pools.
func (a *API) Operations() openapi.Operations {
	operations := a.letterOperations()
	maps.Copy(operations, a.replayOperations())
	maps.Copy(operations, a.poolOperations())
	maps.Copy(operations, a.delayedOperations())
	return operations
}

// actor returns who asks. The document lets only operators pass.
func actor(r *http.Request) string {
	p, ok := auth.From(r.Context())
	if !ok {
		panic("admin: a request reached its handler without a principal")
	}
	return p.ID
}

// selection reads the filters of a query.
func selection(r *http.Request) (deadletter.Selection, error) {
	q := r.URL.Query()
	s := deadletter.Selection{
		Text: q.Get("text"), Queue: q.Get("queue"), Class: q.Get("error_class"), Group: q.Get("error_group"), Type: q.Get("type"),
		State: deadletter.State(q.Get("state")), MessageID: q.Get("message_id"), Replay: q.Get("replay_id"),
	}
	var err error
	if s.From, s.To, err = period(q); err != nil {
		return deadletter.Selection{}, err
	}
	return s, nil
}

// period reads the times from and to of a query; the zero time is none.
func period(q url.Values) (from, to time.Time, err error) {
	for name, t := range map[string]*time.Time{"from": &from, "to": &to} {
		if text := q.Get(name); text != "" {
			if *t, err = time.Parse(time.RFC3339, text); err != nil {
				return from, to, fmt.Errorf("time that the document let pass: %w", err)
			}
		}
	}
	return from, to, nil
}

// number reads a number that the document has checked; missing is otherwise.
func number(s string, otherwise int64) (int64, error) {
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("number that the document let pass: %w", err)
	}
	return n, nil
}

// page reads the limit and the cursor of a query.
func page(r *http.Request) (limit int, before int64, err error) {
	q := r.URL.Query()
	n, err := number(q.Get("limit"), 50)
	if err != nil {
		return 0, 0, err
	}
	before, err = number(q.Get("cursor"), 0)
	return int(n), before, err
}
