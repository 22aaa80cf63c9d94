package service

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// ClientAddress returns the address of the client, which the gateway writes down;
// without a gateway that of the connection. It is for limits, and kept nowhere.
func ClientAddress(r *http.Request) string {
	if forwarded, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ","); forwarded != "" {
		return strings.TrimSpace(forwarded)
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// Network returns what limits count an address as: all IPv6 addresses of a /64 are one.
// Texts that are not addresses are one, too.
func Network(address string) netip.Prefix {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(ip, bits).Masked()
}

// PreferredLanguage returns the first of the offered languages that a header
// Accept-Language prefers, in the order in which browsers write them; the first offered
// one if it prefers none. Old systems call Indonesian by its former code, "in".
func PreferredLanguage(header string, offered ...string) string {
	for tag := range strings.SplitSeq(header, ",") {
		tag, _, _ = strings.Cut(tag, ";")
		code, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if code == "in" {
			code = "id"
		}
		for _, language := range offered {
			if code == language {
				return language
			}
		}
	}
	return offered[0]
}
