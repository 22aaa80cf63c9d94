package email

import (
	"net/mail"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/text"
)

// maxAddress is how long an address may be (RFC 5321 section 4.5.3.1.3, less the
// brackets).
const maxAddress = 254

// addressPattern is what browsers take as an address (WHATWG HTML, "valid e-mail
// address"), with a host that has a dot: others are of one's own network.
var addressPattern = regexp.MustCompile(
	`^[A-Za-z0-9.!#$%&'*+/=?^_{|}~` + "`" + `-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])$`)

// ParseAddress returns an address as it is written to: as it was given, without
// what is copied along with it, and with the name of its host in ASCII. The error is
// for the client, and blames /address.
func ParseAddress(given string) (string, error) {
	address := text.Bare(given)
	if scheme := "mailto:"; len(address) > len(scheme) && strings.EqualFold(address[:len(scheme)], scheme) {
		address = address[len(scheme):]
	}
	address = strings.TrimSuffix(strings.TrimPrefix(address, "<"), ">")
	address = strings.TrimRight(address, ".,;")
	if local, host, ok := strings.Cut(address, "@"); ok {
		if ascii, err := idna.Lookup.ToASCII(host); err == nil && ascii != strings.ToLower(host) {
			address = local + "@" + ascii
		}
	}
	parsed, err := mail.ParseAddress(address) // it knows about dots
	// A program that sends mails might take what begins with a hyphen for an option.
	if len(address) > maxAddress || strings.HasPrefix(address, "-") || !addressPattern.MatchString(address) || err != nil || parsed.Address != address {
		return "", fault.NewInvalid("/address", "must be an e-mail address such as ann@example.org, with ASCII letters and digits before the @")
	}
	return address, nil
}

// Hosts have lanes of their own name, because they have too many people for the name
// to reveal one of them. Other hosts have a lane by a hash.
var Hosts = []string{
	"gmail.com", "googlemail.com", "yahoo.com", "yahoo.co.id", "ymail.com", "rocketmail.com", "outlook.com", "outlook.co.id",
	"hotmail.com", "live.com", "msn.com", "icloud.com", "me.com", "mac.com", "aol.com", "proton.me", "protonmail.com",
	"gmx.com", "gmx.de", "gmx.net", "web.de", "mail.ru", "yandex.com", "yandex.ru", "zoho.com", "fastmail.com", "telkom.net",
}

// host returns the part of an address behind the @, in lower case.
func host(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}

// Lane returns the lane of mails to address: one for each mail host, so that a
// host which defers or throttles holds up nobody elsewhere. A host of few people
// is not named, because it may name them.
func (k *Keys) Lane(address string) string {
	name := host(address)
	if slices.Contains(Hosts, name) {
		return name
	}
	return "host-" + encode(k.hash(k.macs[0], "host", name)[:5])
}

// codeLane is the lane of codes to the same host: who waits for one before the
// page does not wait for the digests of others.
const codeLane = "code:"

// CodeLane returns the lane of codes beside a lane of other mails.
func CodeLane(lane string) string { return codeLane + lane }
