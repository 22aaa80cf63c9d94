package ledger

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrAddressRefused says that an address is not one that may be sent to.
var ErrAddressRefused = errors.New("the address is not one that may be sent to")

// ClassAddressRefused is the class of an address that may not be sent to.
const ClassAddressRefused = "address_refused"

// AnswerOf returns the answer to a response of HTTP, by its status:
//
//	2xx                      delivered
//	408, 409, 5xx, 3xx       failed: sent again by the schedule
//	401, 403, 404            failed: they concern the target, and people repair it
//	429, 503 with a time     too many: sent again then, or by the schedule, and slower
//	425                      too early: sent again then, without an attempt
//	410                      gone
//	any other                refused: this delivery will never be taken
func AnswerOf(resp *http.Response) Answer {
	a := Answer{Status: resp.StatusCode, Class: strconv.Itoa(resp.StatusCode/100) + "xx", Verdict: Refused}
	after, asked := retryAfter(resp.Header.Get("Retry-After"), time.Now())
	switch status := resp.StatusCode; {
	case status >= 200 && status < 300:
		a.Verdict = Delivered
	case status == http.StatusTooEarly:
		a.Verdict, a.After = TooEarly, after
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && asked:
		a.Verdict, a.After = TooMany, after
	case status == http.StatusGone:
		a.Verdict = Gone
	case status >= 300 && status < 400, status >= 500, slices.Contains(failed, status):
		a.Verdict = Failed
	}
	return a
}

// failed are the other statuses that AnswerOf does not take for a refusal.
var failed = []int{http.StatusRequestTimeout, http.StatusConflict, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}

// Unanswered returns the answer to a request of HTTP that err ended. Its text is for operators,
// and names no address.
func Unanswered(ctx context.Context, err error) Answer {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Answer{Verdict: Unsent, Class: "stopped"}
	}
	if errors.Is(err, ErrAddressRefused) {
		return Answer{Verdict: Refused, Class: ClassAddressRefused, Error: ErrAddressRefused.Error()}
	}
	class, text := classify(ctx, err)
	return Answer{Verdict: Failed, Class: class, Error: text}
}

func classify(ctx context.Context, err error) (class, text string) {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "dns", "the name of the host could not be resolved"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || ctx.Err() != nil {
		return "timeout", "no answer in time"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "tls", "the certificate is not valid for the host"
	}
	_, alert := errors.AsType[tls.AlertError](err)
	if alert || errors.Is(err, http.ErrSchemeMismatch) {
		return "tls", "no encrypted connection could be agreed on"
	}
	return "connection", "the connection could not be made, or broke"
}

// retryAfter reads the header of that name (RFC 9110 section 10.2.3): seconds,
// or a date.
func retryAfter(value string, now time.Time) (after time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}
