package ledger

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrAddressRefused says that an address is not one that may be sent to.
var ErrAddressRefused = errors.New("the address is not one that may be sent to")

// ClassAddressRefused is the class of an address that may not be sent to.
const ClassAddressRefused = "address_refused"

// Classify returns the class of the error of a request, and a text for operators
// that names no address.
func Classify(ctx context.Context, err error) (class, text string) {
	if errors.Is(err, ErrAddressRefused) {
		return ClassAddressRefused, ErrAddressRefused.Error()
	}
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

// RetryAfter reads the header of that name (RFC 9110 section 10.2.3): seconds,
// or a date.
func RetryAfter(value string, now time.Time) (after time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}
