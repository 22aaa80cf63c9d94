package auth

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/cityconnect/cityconnect/platform/config"
)

// A Mode says who issues the tokens.
type Mode string

// The modes. In Dev mode report-service itself issues a token to anyone who
// asks, so it is refused wherever strangers could ask.
const (
	JWT Mode = "jwt"
	Dev Mode = "dev"
)

// A Desk says whose reports officials work on.
type Desk string

// The desks. An official at a DepartmentDesk works on the reports of the departments that the
// token names, and a moderator always on those of the whole city.
const (
	CityDesk       Desk = "city"
	DepartmentDesk Desk = "department"
)

// minSecret is the length of an HS256 key that RFC 7518 (3.2) requires.
const minSecret = 32

// A Config says whose tokens are accepted. See docs/configuration.md.
type Config struct {
	Mode     Mode   `env:"AUTH_MODE" envDefault:"jwt"`
	Issuer   string `env:"AUTH_ISSUER"`
	Audience string `env:"AUTH_AUDIENCE"`
	// Secret is the HS256 key that tokens are signed with; JWKSURL is where
	// the keys for RS256, ES256 and EdDSA are published. At most one is set: without
	// any, the issuer is asked where it publishes its keys.
	Secret    string `env:"AUTH_JWT_SECRET"`
	JWKSURL   string `env:"AUTH_JWKS_URL"`
	RoleClaim string `env:"AUTH_ROLE_CLAIM" envDefault:"role"`
	// DepartmentsClaim is the claim with the codes of an official's departments.
	DepartmentsClaim string `env:"AUTH_DEPARTMENTS_CLAIM" envDefault:"departments"`
	DeskScope        Desk   `env:"DESK_SCOPE" envDefault:"city"`
	// MaxTokenLife is how far ahead the expiry of a token may be; zero is 24 h.
	MaxTokenLife time.Duration `env:"AUTH_MAX_TOKEN_LIFE" envDefault:"24h"`
	// DevNetwork is the stack's own network, the only place beside loopback
	// where Dev mode may listen.
	DevNetwork string `env:"AUTH_DEV_NETWORK"`
	// DevHosts are the host names under which Dev mode hands out tokens, beside
	// those of the loopback.
	DevHosts []string `env:"AUTH_DEV_HOSTS" example:"city.test"`
	// Guests says whether people report without an account, and GuestKey has the HS256
	// keys of their tokens, joined by commas: the first signs, and all are accepted. Both
	// services have the same.
	Guests   config.Switch `env:"GUESTS" envDefault:"off" example:"on"`
	GuestKey string        `env:"GUEST_KEY"`
	// Addr is the address that the service listens on.
	Addr string `env:"-"`
}

// Validate returns everything that is wrong with c, without showing a secret.
func (c Config) Validate() []config.Fault {
	var faults config.Faults
	faults.Check(c.Mode == JWT || c.Mode == Dev, "AUTH_MODE", "jwt or dev")
	faults.Check(c.Issuer != "" && !strings.ContainsFunc(c.Issuer, unicode.IsSpace), "AUTH_ISSUER", "the iss of the tokens, such as https://id.example.org/realms/city")
	faults.Check(c.Audience != "", "AUTH_AUDIENCE", "the aud of the tokens, such as cityconnect")
	faults.Check(c.RoleClaim != "", "AUTH_ROLE_CLAIM", "the claim that holds the role, such as role or realm_access.roles")
	faults.Check(c.DepartmentsClaim != "", "AUTH_DEPARTMENTS_CLAIM", "the claim that holds the codes of an official's departments, such as departments")
	faults.Check(c.DeskScope == "" || c.DeskScope == CityDesk || c.DeskScope == DepartmentDesk, "DESK_SCOPE", "city or department")
	faults.Check(c.MaxTokenLife == 0 || c.MaxTokenLife >= time.Minute, "AUTH_MAX_TOKEN_LIFE", "1m or more, such as 24h")
	faults.Check(!slices.ContainsFunc(c.DevHosts, func(h string) bool { return h == "" || strings.ContainsAny(h, " /:") }),
		"AUTH_DEV_HOSTS", "host names without ports, joined by commas, such as city.test")

	secret := fmt.Sprintf("at least %d bytes long, such as $(openssl rand -hex 32)", minSecret)
	switch {
	case c.Mode == Dev:
		faults.Check(len(c.Secret) >= minSecret, "AUTH_JWT_SECRET", secret)
		if fault, ok := c.devFault(net.InterfaceAddrs); ok {
			faults = append(faults, fault)
		}
	case c.Secret != "":
		faults.Check(len(c.Secret) >= minSecret, "AUTH_JWT_SECRET", secret)
	case c.JWKSURL == "":
		faults.Check(isDiscoverable(c.Issuer), "AUTH_ISSUER", "an https:// address without a query, such as https://id.example.org/realms/city, "+
			"which is asked for its keys; or AUTH_JWKS_URL or AUTH_JWT_SECRET must be set")
	default:
		faults.Check(isHTTP(c.JWKSURL), "AUTH_JWKS_URL", "an absolute URL, such as https://id.example.org/realms/city/protocol/openid-connect/certs")
	}
	faults.Check(c.Secret == "" || c.JWKSURL == "", "AUTH_JWKS_URL", "empty where AUTH_JWT_SECRET is set")
	if c.Guests {
		faults.Check(c.Issuer != GuestIssuer, "AUTH_ISSUER", "another one than "+GuestIssuer+", which the city signs itself")
		weak := func(key string) bool { return len(key) < minSecret || key == c.Secret }
		faults.Check(!slices.ContainsFunc(c.guestKeys(), weak), "GUEST_KEY",
			fmt.Sprintf("at least %d bytes long, such as $(openssl rand -hex 32), and not AUTH_JWT_SECRET; several are joined by commas", minSecret))
	}
	return faults
}

func (c Config) guestKeys() []string { return strings.Split(c.GuestKey, ",") }

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// devFault makes sure that only this machine or the stack's own network can
// reach a service that hands out tokens to anyone. ok says that there is a
// fault.
func (c Config) devFault(interfaces func() ([]net.Addr, error)) (fault config.Fault, ok bool) {
	networks, err := parseNetworks(c.DevNetwork)
	if err != nil {
		return config.Fault{Variable: "AUTH_DEV_NETWORK", Must: "private networks joined by commas, such as 172.28.0.0/16"}, true
	}
	addrs, err := bound(c.Addr, interfaces)
	if err != nil {
		return config.Fault{Variable: "AUTH_MODE", Must: "jwt, or dev beside an HTTP_ADDR with an IP address, such as 127.0.0.1:3002"}, true
	}
	for _, a := range addrs {
		inside := func(n netip.Prefix) bool { return n.Contains(a) }
		if !a.IsLoopback() && !slices.ContainsFunc(networks, inside) {
			must := fmt.Sprintf("jwt, or dev beside an HTTP_ADDR such as 127.0.0.1:3002: "+
				"dev gives a token to anyone who asks, and %q also listens on %s, which is neither loopback nor within AUTH_DEV_NETWORK", c.Addr, a)
			// A pod has an address of its link that nobody gave it.
			if i := slices.IndexFunc(privateNetworks, func(n netip.Prefix) bool { return n.Contains(a) }); i >= 0 {
				must += fmt.Sprintf("; if only those of your stack are in %s, add it there", privateNetworks[i])
			}
			return config.Fault{Variable: "AUTH_MODE", Must: must}, true
		}
	}
	return config.Fault{}, false
}

func parseNetworks(s string) ([]netip.Prefix, error) {
	if s == "" {
		return nil, nil
	}
	var networks []netip.Prefix
	for entry := range strings.SplitSeq(s, ",") {
		n, err := netip.ParsePrefix(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		if !isPrivate(n) {
			return nil, fmt.Errorf("%s is not private", n)
		}
		networks = append(networks, n)
	}
	return networks, nil
}

// privateNetworks are those that no stranger's packet comes from (RFC 1918,
// 4193, 3927 and 4291).
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("::1/128"),
}

func isPrivate(n netip.Prefix) bool {
	return slices.ContainsFunc(privateNetworks, func(p netip.Prefix) bool { return p.Bits() <= n.Bits() && p.Contains(n.Addr()) })
}

// isDevHost reports whether host, the Host header of a request, is one under
// which Dev mode hands out tokens. A page of another site whose name was made
// to lead to this machine, or a tunnel or proxy before it, has another one.
func (c Config) isDevHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback() || slices.Contains(c.DevHosts, host)
	}
	return strings.EqualFold(host, "localhost") || slices.ContainsFunc(c.DevHosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// bound lists the addresses that listening on addr makes reachable: for "any
// address" those of all interfaces.
func bound(addr string, interfaces func() ([]net.Addr, error)) ([]netip.Addr, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	if host != "" {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return nil, err
		}
		if !ip.IsUnspecified() {
			return []netip.Addr{ip.Unmap()}, nil
		}
	}
	all, err := interfaces()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	var ips []netip.Addr
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			return nil, fmt.Errorf("read this machine's addresses: %w", err)
		}
		ips = append(ips, p.Addr().Unmap())
	}
	return ips, nil
}
