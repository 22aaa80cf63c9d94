// Package admin is the operators' side of notification-service over HTTP:
// dead letters, their replays, messages that wait until a time, worker pools and webhooks. It
// has a type for each subject, whose Operations the program passes to api.New.
//
// The OpenAPI document decides before who may use it, and what a request may
// contain. The package promises that no answer names a reporter or a voter.
package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/service"
)

// selection reads the filters of a query.
func selection(r *http.Request) deadletter.Selection {
	q := r.URL.Query()
	s := deadletter.Selection{
		Text: q.Get("text"), Queue: q.Get("queue"), Class: q.Get("error_class"), Group: q.Get("error_group"), Type: q.Get("type"),
		State: deadletter.State(q.Get("state")), MessageID: q.Get("message_id"), Replay: q.Get("replay_id"),
	}
	s.From, s.To = period(q)
	return s
}

// period reads the times from and to of a query; the zero time is none.
func period(q url.Values) (from, to time.Time) {
	for name, t := range map[string]*time.Time{"from": &from, "to": &to} {
		if text := q.Get(name); text != "" {
			var err error
			if *t, err = time.Parse(time.RFC3339, text); err != nil {
				panic(fmt.Sprintf("admin: time that the document let pass: %v", err))
			}
		}
	}
	return from, to
}

// cut returns the page of entries, of which there is one more than limit if another page
// follows, and then the cursor of that.
func cut[T any](entries []T, limit int, cursor func(last T) string) (page []T, next string) {
	if len(entries) <= limit {
		return entries, ""
	}
	return entries[:limit], cursor(entries[limit-1])
}

// page reads the limit and the cursor of a query.
func page(r *http.Request) (limit int, before int64) {
	q := r.URL.Query()
	return int(service.Number(q.Get("limit"))), service.Number(q.Get("cursor"))
}
