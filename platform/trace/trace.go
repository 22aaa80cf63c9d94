// Package trace reads and writes the W3C trace context, by which the logs of all services
// identify a request (https://www.w3.org/TR/trace-context/).
package trace

import (
	"crypto/rand"
	"encoding/hex"
)

// Header carries the trace context, in requests and in messages.
const Header = "traceparent"

// The trace context of version 00 has fields of a fixed length: "00-", the id of the
// trace, "-", the id of the caller's span, "-", the flags.
const (
	idAt, spanAt, flagsAt, length = 3, 36, 53, 55

	zeroID, zeroSpan = "00000000000000000000000000000000", "0000000000000000"
)

// knownFlags are the values of the two flags that are defined, sampled and random. All
// others must be zero in what is sent.
var knownFlags = [...]string{"00", "01", "02", "03"}

// sampled are the flags of a trace that begins here. It is logged, always.
const sampled = "01"

// Parse returns the id and the flags of a trace context; ok is false if it is not a
// valid one. A later version may have more fields behind those of version 00; ff is
// none.
func Parse(parent string) (id, flags string, ok bool) {
	if len(parent) < length || parent[2] != '-' || parent[spanAt-1] != '-' || parent[flagsAt-1] != '-' {
		return "", "", false
	}
	version, id, span, flags := parent[:2], parent[idAt:spanAt-1], parent[spanAt:flagsAt-1], parent[flagsAt:length]
	switch {
	case !isHex(version), !isHex(id), !isHex(span), !isHex(flags), version == "ff", id == zeroID, span == zeroSpan,
		len(parent) > length && (version == "00" || parent[length] != '-'):
		return "", "", false
	}
	return id, knownFlags[digit(flags[1])&3], true
}

// ID returns the id of the trace, or "" if parent is not a valid trace context.
func ID(parent string) string {
	id, _, _ := Parse(parent)
	return id
}

// Child returns a trace context with a span of its own: in the trace of parent, or in a
// new one if parent is not a valid trace context.
func Child(parent string) string {
	id, flags, ok := Parse(parent)
	if !ok {
		return format("", sampled)
	}
	return format(id, flags)
}

// In returns a trace context with a span of its own in the trace that has the id, or in
// a new one if the id is "".
func In(id string) string { return format(id, sampled) }

func format(id, flags string) string {
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	parent := [length]byte{0: '0', 1: '0', idAt - 1: '-', spanAt - 1: '-', flagsAt - 1: '-'}
	if id == "" {
		hex.Encode(parent[idAt:], random[:16])
	} else {
		copy(parent[idAt:spanAt-1], id)
	}
	hex.Encode(parent[spanAt:], random[16:])
	copy(parent[flagsAt:], flags)
	return string(parent[:])
}

// isHex reports whether s has hexadecimal digits alone, in lower case as the trace
// context has them.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// digit returns the value of a hexadecimal digit.
func digit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}
