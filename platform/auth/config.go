package auth

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// A Mode says who issues the tokens.
type Mode string

// The modes. In Dev mode report-service itself issues a token to anyone who
// asks, so it is refused wherever strangers could ask.
const (
	JWT Mode = "jwt"
	Dev Mode = "dev"
)

// minSecret is the length that RFC 7518 wants of an HS256 key.
const minSecret = 32

// A Config says whose tokens are accepted. See docs/configuration.md.
type Config struct {
	Mode     Mode   `env:"AUTH_MODE" envDefault:"jwt"`
	Issuer   string `env:"AUTH_ISSUER"`
	Audience string `env:"AUTH_AUDIENCE"`
	// Secret is the HS256 key that tokens are signed with; JWKSURL is where
	// the keys for RS256, ES256 and EdDSA are published. Exactly one is set.
	Secret    string `env:"AUTH_JWT_SECRET"`
	JWKSURL   string `env:"AUTH_JWKS_URL"`
	RoleClaim string `env:"AUTH_ROLE_CLAIM" envDefault:"role"`
	// DevNetwork is the stack's own network, the only place beside loopback
	// where Dev mode may listen.
	DevNetwork string `env:"AUTH_DEV_NETWORK"`
	// Addr is the address that the service listens on.
	Addr string `env:"-"`
}

// Validate reports everything that is wrong with c, each fault by the name of
// its variable, without showing a secret.
func (c Config) Validate() error {
	var faults []error
	wrong := func(name, format string, args ...any) {
		faults = append(faults, fmt.Errorf(name+": "+format, args...))
	}
	if c.Mode != JWT && c.Mode != Dev {
		wrong("AUTH_MODE", "want jwt or dev, got %q", c.Mode)
	}
	if c.Issuer == "" {
		wrong("AUTH_ISSUER", "missing; want the iss of the tokens, such as https://id.example.org/realms/city")
	}
	if c.Audience == "" {
		wrong("AUTH_AUDIENCE", "missing; want the aud of the tokens, such as cityconnect")
	}
	if c.RoleClaim == "" {
		wrong("AUTH_ROLE_CLAIM", "missing; want the claim that holds the role, such as role or realm_access.roles")
	}
	switch {
	case c.Secret == "" && (c.JWKSURL == "" || c.Mode == Dev):
		wrong("AUTH_JWT_SECRET", "missing; want at least %d bytes, such as $(openssl rand -hex 32)%s", minSecret, orJWKS(c.Mode))
	case c.Secret != "" && c.JWKSURL != "":
		wrong("AUTH_JWKS_URL", "set beside AUTH_JWT_SECRET; want only one of them")
	case c.Secret != "" && len(c.Secret) < minSecret:
		wrong("AUTH_JWT_SECRET", "want at least %d bytes, such as $(openssl rand -hex 32), got %d", minSecret, len(c.Secret))
	case c.JWKSURL != "" && !isHTTP(c.JWKSURL):
		wrong("AUTH_JWKS_URL", "want an absolute URL, such as https://id.example.org/realms/city/protocol/openid-connect/certs")
	}
	if c.Mode == Dev {
		if err := c.checkDevBind(net.InterfaceAddrs); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func orJWKS(m Mode) string {
	if m == Dev {
		return ""
	}
	return ", or AUTH_JWKS_URL"
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// checkDevBind makes sure that only this machine or the stack's own network
// can reach a service that hands out tokens to anyone.
func (c Config) checkDevBind(interfaces func() ([]net.Addr, error)) error {
	networks, err := parseNetworks(c.DevNetwork)
	if err != nil {
		return err
	}
	addrs, err := bound(c.Addr, interfaces)
	if err != nil {
		return fmt.Errorf("AUTH_MODE: dev wants an HTTP_ADDR with an IP address, such as 127.0.0.1:3002: %w", err)
	}
	for _, a := range addrs {
		inside := func(n netip.Prefix) bool { return n.Contains(a) }
		if !a.IsLoopback() && !slices.ContainsFunc(networks, inside) {
			return fmt.Errorf("AUTH_MODE: dev gives a token to anyone who asks, and HTTP_ADDR %q also listens on %s, "+
				"which is neither loopback nor within AUTH_DEV_NETWORK; want 127.0.0.1:PORT, or AUTH_MODE=jwt", c.Addr, a)
		}
	}
	return nil
}

func parseNetworks(s string) ([]netip.Prefix, error) {
	if s == "" {
		return nil, nil
	}
	var networks []netip.Prefix
	for entry := range strings.SplitSeq(s, ",") {
		n, err := netip.ParsePrefix(strings.TrimSpace(entry))
		if err != nil {
			return nil, fmt.Errorf("AUTH_DEV_NETWORK: want networks joined by commas, such as 172.28.0.0/16, got %q", entry)
		}
		networks = append(networks, n)
	}
	return networks, nil
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
