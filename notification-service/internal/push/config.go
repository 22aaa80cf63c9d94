package push

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Config is what an operator may set. Without PUSH_VAPID_KEY nothing is pushed,
// and the page does not offer it.
type Config struct {
	VAPIDKey   string   `env:"PUSH_VAPID_KEY" example:"$(notification-service vapid-key)"`
	Contact    string   `env:"PUSH_CONTACT" example:"mailto:operations@city.example.org"`
	AllowHosts []string `env:"PUSH_ALLOW_HOSTS" envDefault:"*.push.services.mozilla.com,fcm.googleapis.com,jmt17.google.com,*.push.apple.com,*.notify.windows.com"`

	key *ecdh.PrivateKey // VAPIDKey, read by Validate
}

const (
	// concurrency is how many requests a worker has in flight, perLane how many at
	// one push service.
	concurrency, perLane = 32, 8
	timeout              = 10 * time.Second
)

// pauses are those before each further attempt.
var pauses = ledger.Schedule{30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour}

// Enabled reports whether anything is pushed.
func (c *Config) Enabled() bool { return c.VAPIDKey != "" }

// Ledger returns what c says to the dispatcher. No lane is ever disabled: what
// waits for a push service that is away ends by itself.
func (c *Config) Ledger() ledger.Config {
	return ledger.Config{Concurrency: concurrency, Timeout: timeout, Schedule: pauses, DisableAfter: 100 * 365 * 24 * time.Hour}
}

// PublicKey returns the key that browsers are given: only the owner of the private
// key may push to those that subscribed with it.
func (c *Config) PublicKey() string { return encode(c.key.PublicKey().Bytes()) }

// NewKey returns a fresh private key, as PUSH_VAPID_KEY takes it, and its public
// key.
func NewKey() (private, public string) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // never, see crypto/rand
	}
	return encode(key.Bytes()), encode(key.PublicKey().Bytes())
}

// encode is base64url without padding (RFC 4648 section 5).
func encode(bytes []byte) string { return base64.RawURLEncoding.EncodeToString(bytes) }

// hostPattern is a host, perhaps with * in place of its first labels and with a
// port.
var hostPattern = regexp.MustCompile(`^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?$`)

// Validate returns everything that is wrong with c.
func (c *Config) Validate() []config.Fault {
	var faults config.Faults
	for i, host := range c.AllowHosts {
		c.AllowHosts[i] = strings.ToLower(strings.TrimSpace(host))
	}
	faults.Check(!slices.ContainsFunc(c.AllowHosts, func(host string) bool { return !hostPattern.MatchString(host) }), "PUSH_ALLOW_HOSTS",
		"hosts joined by commas, such as fcm.googleapis.com,*.push.apple.com")
	if !c.Enabled() {
		return faults
	}
	bytes, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(c.VAPIDKey, "="))
	if err == nil {
		c.key, err = ecdh.P256().NewPrivateKey(bytes)
	}
	faults.Check(err == nil, "PUSH_VAPID_KEY", "the base64url of a P-256 key, as notification-service vapid-key prints it")
	faults.Check(reachable(c.Contact), "PUSH_CONTACT",
		"an address where push services reach you, with a domain that others can resolve, such as mailto:operations@city.example.org or https://city.example.org/contact")
	return faults
}

// private are top-level domains that nobody else can resolve (RFC 2606, RFC 6762,
// RFC 8375 and what networks use). Apple's push service refuses such a contact.
var private = []string{"localhost", "local", "invalid", "test", "example", "internal", "intranet", "lan", "home", "arpa", "corp"}

// reachable reports whether push services can write to a contact (RFC 8292
// section 2.1).
func reachable(contact string) bool {
	var host string
	if address, ok := strings.CutPrefix(contact, "mailto:"); ok {
		if parsed, err := mail.ParseAddress(address); err != nil || parsed.Address != address {
			return false
		}
		host = address[strings.LastIndexByte(address, '@')+1:]
	} else {
		u, err := url.Parse(contact)
		if err != nil || u.Scheme != "https" || u.User != nil {
			return false
		}
		host = u.Hostname()
	}
	dot := strings.LastIndexByte(host, '.')
	top := strings.ToLower(host[dot+1:])
	return dot > 0 && top != "" && strings.Trim(top, "0123456789") != "" && !strings.Contains(host, ":") && !slices.Contains(private, top)
}

// maxEndpoint is how long the address of a device may be. Those of today's push
// services have 150 to 600 bytes.
const maxEndpoint = 1024

// CheckEndpoint returns the host of a device's address. The error is for the client,
// and blames /endpoint: the address decides where this city's servers connect to.
func (c *Config) CheckEndpoint(address string) (host string, err error) {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxEndpoint || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return "", fault.NewInvalid("/endpoint", fmt.Sprintf("must be the https:// address that the browser's push service gave, of %d bytes at most", maxEndpoint))
	}
	host = strings.ToLower(strings.TrimSuffix(u.Host, ":443"))
	allows := func(pattern string) bool {
		domain, any := strings.CutPrefix(pattern, "*")
		return host == pattern || any && len(host) > len(domain) && strings.HasSuffix(host, domain)
	}
	if !slices.ContainsFunc(c.AllowHosts, allows) {
		return "", fault.NewInvalid("/endpoint", "this city does not send to that push service; it sends to "+strings.Join(c.AllowHosts, ", "))
	}
	return host, nil
}
