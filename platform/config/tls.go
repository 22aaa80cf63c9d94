package config

import (
	"crypto/tls"
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// WarnWithoutTLS logs a warning for each variable that leads to a server on
// another machine without TLS, or with a TLS that takes anybody for the server:
// anybody in between can read and change all that is sent, passwords first.
// urls has the values by their variables; empty ones are left out.
func WarnWithoutTLS(log zerolog.Logger, urls map[string]string) {
	for variable, address := range urls {
		if host, ok := unprotected(address); ok {
			log.Warn().Str("variable", variable).Str("host", host).
				Msg("no TLS that checks the server: anyone in between can read and change the traffic; see docs/production.md")
		}
	}
}

// unprotected returns the first host of address that is on another machine and
// is not reached by a TLS that checks who answers.
func unprotected(address string) (host string, ok bool) {
	switch scheme, _, _ := strings.Cut(address, "://"); scheme {
	case "amqp", "http":
		for _, node := range rabbit.SplitHosts(address) {
			u, err := url.Parse(node)
			if err != nil {
				return "", false // Validate has refused it
			}
			if !isLocal(u.Hostname()) {
				return u.Hostname(), true
			}
		}
		return "", false
	case "", "amqps", "https":
		return "", false
	}
	cfg, err := pgconn.ParseConfig(address) // a URL or "host=… user=…"
	if err != nil {
		return "", false
	}
	if !checks(cfg.TLSConfig) && !isLocal(cfg.Host) {
		return cfg.Host, true
	}
	for _, fallback := range cfg.Fallbacks { // other hosts, and the same one without TLS
		if !checks(fallback.TLSConfig) && !isLocal(fallback.Host) {
			return fallback.Host, true
		}
	}
	return "", false
}

// checks reports whether cfg is a TLS that checks the server. sslmode=verify-ca
// does so by a function of its own.
func checks(cfg *tls.Config) bool {
	return cfg != nil && (!cfg.InsecureSkipVerify || cfg.VerifyPeerCertificate != nil)
}

// isLocal reports whether host is this machine: by name, by address, or as the
// folder of a socket.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || ip != nil && ip.IsLoopback()
}
