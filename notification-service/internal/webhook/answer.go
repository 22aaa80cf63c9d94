package webhook

import (
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
)

// verdict returns the verdict on a status of HTTP, and how long the endpoint asks to
// wait.
//
//	2xx                      delivered
//	408, 409, 5xx, 3xx       failed: sent again by the schedule
//	401, 403, 404            failed: they concern the endpoint, and people repair it
//	429, 503 with a time     too many: sent again then, or by the schedule, and slower
//	425                      too early: sent again then, without an attempt
//	410                      gone: the endpoint is disabled
//	any other                refused: this event will never be taken
func verdict(status int, header http.Header, now time.Time) (ledger.Verdict, time.Duration) {
	after, asked := ledger.RetryAfter(header.Get("Retry-After"), now)
	switch {
	case status >= 200 && status < 300:
		return ledger.Delivered, 0
	case status == http.StatusTooEarly:
		return ledger.TooEarly, after
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && asked:
		return ledger.TooMany, after
	case status == http.StatusGone:
		return ledger.Gone, 0
	case status >= 500, status >= 300 && status < 400:
		return ledger.Failed, 0
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return ledger.Failed, 0
	}
	return ledger.Refused, 0
}
