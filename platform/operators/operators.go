// Package operators is the operators' API of every service: the schedules and their
// runs, the erasures, the history of the replicas' counts, and the messages that groups
// of consumers have not found.
//
// The OpenAPI document of the service says who may ask and what a request may
// contain, and is checked first. The documents of all services describe these answers
// alike, and a test compares them with the types here. No answer names a person who is
// being erased.
package operators

import (
	"net/http"

	"github.com/cityconnect/cityconnect/platform/service"
)

// timed is an operation that waits for the database and for nothing else.
func timed(h service.HandlerFunc) service.Operation {
	return service.Operation{Handler: h, Timeout: service.DefaultTimeout}
}

// limit reads the number of requested items.
func limit(r *http.Request) int { return int(service.Number(r.URL.Query().Get("limit"))) }
