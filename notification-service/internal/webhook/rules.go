package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/net/idna"

	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// Limits of what an operator registers. The OpenAPI document repeats them.
const (
	MaxURL          = 2048 // bytes
	MaxDescription  = 200  // characters
	MaxInFlight     = 16
	DefaultInFlight = 2
)

// Rules say which addresses may be registered. They exist for the message: an
// operator reads at once what is wrong. The city's own network is protected by the
// check of the address at connect, which no name can get around.
type Rules struct {
	// AllowHTTP lets an address begin with http: for development.
	AllowHTTP bool `env:"WEBHOOK_ALLOW_HTTP" envDefault:"false"`
	// AllowNetworks are networks that are not public and may be sent to all the
	// same. Hosts in them need neither a name nor one of the ports.
	AllowNetworks []netip.Prefix `env:"WEBHOOK_ALLOW_NETWORKS" example:"10.20.0.0/16,fd12::/48"`
}

// Validate returns what is wrong with r.
func (r Rules) Validate() []config.Fault {
	var faults config.Faults
	everywhere := func(p netip.Prefix) bool { return p.Bits() == 0 || p != p.Masked() }
	faults.Check(!slices.ContainsFunc(r.AllowNetworks, everywhere), "WEBHOOK_ALLOW_NETWORKS",
		"networks joined by commas, without bits of a host and none of them all addresses, such as 10.20.0.0/16")
	return faults
}

// ports are those that receivers may listen on. Others are where databases and
// brokers listen.
var ports = []string{"443", "8443"}

// CleanURL returns the address of an endpoint without white space around it, and with
// the name of its host in ASCII (Punycode). What is wrong with it, CheckURL says.
func CleanURL(address string) string {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	if err != nil || isASCII(u.Host) {
		return address
	}
	host, err := idna.Lookup.ToASCII(u.Hostname())
	if err != nil {
		return address
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	return strings.Replace(address, u.Host, host, 1)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// CheckURL returns what is wrong with address as that of an endpoint, in words
// for the operator.
func (r Rules) CheckURL(address string) error {
	if len(address) > MaxURL {
		return fmt.Errorf("must be at most %d bytes long", MaxURL)
	}
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.Host == "" { // the error quotes the address, and with it its secrets
		return fmt.Errorf("must be an address such as https://hooks.example.org/cityconnect")
	}
	switch {
	case u.Scheme != "https" && !r.AllowHTTP:
		return fmt.Errorf("must be an address that begins with https://; WEBHOOK_ALLOW_HTTP also allows http://")
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("must be an address that begins with https:// or http://")
	case u.User != nil:
		return fmt.Errorf("must not contain a user or a password: requests are signed instead")
	case u.Fragment != "" || strings.HasSuffix(address, "#"):
		return fmt.Errorf("must not have a fragment (#…): it is never sent")
	}
	return r.checkHost(u.Hostname(), u.Port())
}

func (r Rules) checkHost(host, port string) error {
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("must have a port between 1 and 65535")
		}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		within := func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) }
		if !slices.ContainsFunc(r.AllowNetworks, within) {
			return fmt.Errorf("must have the name of a host instead of an IP address; WEBHOOK_ALLOW_NETWORKS names the networks that may be sent to")
		}
		return nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(label) > 63 {
			return fmt.Errorf("must have the name of a host in ASCII letters, digits and hyphens, such as hooks.example.org; write others in Punycode (xn--…)")
		}
	}
	// A last label that is a number makes an IPv4 address of it for many
	// resolvers: 127.1, 2130706433, 0x7f.1 (WHATWG URL, "ends in a number").
	last := labels[len(labels)-1]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.Trim(last, "0123456789") == "" {
		return fmt.Errorf("must have the name of a host instead of a number")
	}
	if len(r.AllowNetworks) > 0 {
		return nil // what the name leads to is checked at connect
	}
	if len(labels) == 1 {
		return fmt.Errorf("must have the full name of a host, such as hooks.example.org; WEBHOOK_ALLOW_NETWORKS allows for hosts of the city's own")
	}
	if port != "" && !slices.Contains(ports, port) && !r.AllowHTTP {
		return fmt.Errorf("must have the port %s, or none", strings.Join(ports, " or "))
	}
	return nil
}

// A Registration is what an operator says about an endpoint.
type Registration struct {
	URL         string
	Description string
	Filter      Filter
	Scopes      []string // cannot be changed: nothing that was sent or failed is to be taken back
	Order       Order
	InFlight    int
}

// Host returns where the events go, without the parts of the address that may be
// secret.
func (r Registration) Host() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// A Change is what an operator changes about an endpoint. Fields that are nil stay.
type Change struct {
	URL         *string
	Description *string
	Types       *[]string
	Categories  *[]int32
	Area        **Area // to nil: everywhere
	Order       *Order
	InFlight    *int
}

// Apply returns r with the change.
func (c Change) Apply(r Registration) Registration {
	set(&r.URL, c.URL)
	set(&r.Description, c.Description)
	set(&r.Filter.Types, c.Types)
	set(&r.Filter.Categories, c.Categories)
	set(&r.Filter.Area, c.Area)
	set(&r.Order, c.Order)
	set(&r.InFlight, c.InFlight)
	return r
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Check returns the first thing that is wrong with reg, a fault.Error that names
// the field as the API does. The address is checked only if it differs from
// known, so that an endpoint of older rules can be changed otherwise.
func (r Rules) Check(reg Registration, known string) error {
	if reg.URL != known {
		if err := r.CheckURL(reg.URL); err != nil {
			return fault.NewInvalid("/url", err.Error())
		}
	}
	if utf8.RuneCountInString(reg.Description) > MaxDescription {
		return fault.NewInvalid("/description", fmt.Sprintf("must have at most %d characters", MaxDescription))
	}
	for i, typ := range reg.Filter.Types {
		if !slices.Contains(Types(), event.Key(typ)) {
			return fault.NewInvalid(fmt.Sprintf("/event_types/%d", i), "must be one of "+eventTypes())
		}
	}
	for i, id := range reg.Filter.Categories {
		if id <= 0 {
			return fault.NewInvalid(fmt.Sprintf("/category_ids/%d", i), "must be the id of a category")
		}
	}
	if a := reg.Filter.Area; a != nil {
		west, south, east, north := a[0], a[1], a[2], a[3]
		switch {
		case west < -180 || west > 180 || east < -180 || east > 180 || west >= east:
			return fault.NewInvalid("/area", "must have the west before the east, both between -180 and 180")
		case south < -90 || north > 90 || south >= north:
			return fault.NewInvalid("/area", "must have the south below the north, both between -90 and 90")
		}
	}
	if reg.Order != OrderReport && reg.Order != OrderNone {
		return fault.NewInvalid("/order", "must be report or none")
	}
	if reg.InFlight < 1 || reg.InFlight > MaxInFlight {
		return fault.NewInvalid("/in_flight", fmt.Sprintf("must be 1 to %d", MaxInFlight))
	}
	return nil
}

// eventTypes lists the events that an endpoint may ask for.
func eventTypes() string {
	keys := Types()
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = string(key)
	}
	return strings.Join(names, ", ")
}

// NewEndpoint returns the endpoint that reg describes, without the times that
// the database gives it, and its secret, which is kept nowhere in the open.
func NewEndpoint(reg Registration, keys *event.Keyring) (Endpoint, string) {
	id := uuid.Must(uuid.NewV7())
	secret := NewSecret()
	return Endpoint{
		ID: id, URL: reg.URL, Description: reg.Description, Filter: reg.Filter, Scopes: reg.Scopes, Order: reg.Order, InFlight: reg.InFlight,
		State: Enabled, Version: 1, Secrets: Secrets{Sealed: SealSecret(keys, id, secret)},
	}, secret
}

// Registration returns what an operator said about e.
func (e *Endpoint) Registration() Registration {
	return Registration{URL: e.URL, Description: e.Description, Filter: e.Filter, Scopes: e.Scopes, Order: e.Order, InFlight: e.InFlight}
}
