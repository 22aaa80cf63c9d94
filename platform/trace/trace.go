// Package trace reads the W3C trace context, by which the logs of all services identify a
// request (https://www.w3.org/TR/trace-context/).
package trace

import (
	"regexp"
	"strings"
)

// Header carries the trace context, in requests and in messages.
const Header = "traceparent"

// pattern matches version 00, the only one there is, and whatever a later version may
// append.
var pattern = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)

// Parse returns the id and the flags of a trace context; ok is false if it is not a
// valid one.
func Parse(parent string) (id, flags string, ok bool) {
	m := pattern.FindStringSubmatch(parent)
	if m == nil || m[1] == "ff" || m[1] == "00" && m[5] != "" || strings.Trim(m[2], "0") == "" || strings.Trim(m[3], "0") == "" {
		return "", "", false
	}
	return m[2], m[4], true
}
