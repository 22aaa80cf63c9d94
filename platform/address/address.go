// Package address finds mistakes in the URLs of servers that an operator writes down
// with a password in them.
//
// It promises that what it says of a URL repeats nothing of it: a password in the
// wrong place looks like a host.
package address

import (
	"regexp"
	"strings"
)

// Rules for URLs, in words that follow "must be".
const (
	encoded = "a URL; it must have @ in the password encoded as %40, # as %23, / as %2F, ? as %3F, % as %25 and a space as %20"
	named   = "a URL with the name or the IP address of a host"
)

var (
	schemePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	// userPattern is the part before the @ (RFC 3986, 3.2.1).
	userPattern = regexp.MustCompile(`^(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*$`)
	// hostPattern is a host with or without a port; one with % is the folder of a
	// socket, and one with other letters an internationalised name.
	hostPattern = regexp.MustCompile(`^(?:\[[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9._-]+)?\]|(?:[\pL\pN._-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?$`)
)

// Fault returns what a URL must be, or "" if its user, password and hosts are where
// they seem to be. It says nothing about a text that is not a URL, nor about one of a
// file. Several hosts may stand in one URL, with commas between them.
func Fault(rawURL string) string {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok || !schemePattern.MatchString(scheme) || scheme == "file" || scheme == "unix" {
		return ""
	}
	authority, behind := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, behind = rest[:end], rest[end:]
	}
	user, hosts, hasUser := strings.Cut(authority, "@")
	if !hasUser {
		user, hosts = "", authority
	}
	if strings.Contains(hosts, "@") || strings.Contains(behind, "@") || !userPattern.MatchString(user) {
		return encoded
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if !hostPattern.MatchString(host) {
			return named
		}
	}
	return ""
}
