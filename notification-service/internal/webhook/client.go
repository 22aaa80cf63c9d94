package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
)

// Limits of one request. A receiver's answer is not to be trusted more than its
// address.
const (
	connectTimeout   = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	idleTimeout      = 90 * time.Second // of a connection that is kept
	maxHeader        = 32 << 10
	// pingAfter is the silence after which a connection of HTTP/2, which many
	// requests share, is probed.
	pingAfter, pingTimeout = 10 * time.Second, 5 * time.Second
)

// NewClient returns the client that sends webhooks. It connects to public
// addresses only, and to those that rules allow. The address is checked when
// the connection is made, after every name was resolved, so that a name which
// changes its address leads nowhere else. It follows no redirect and takes no
// proxy from the environment.
//
// With a proxy, which the operators run, all goes there: which addresses may be
// sent to is then for the proxy to decide. The roots are those that receivers'
// certificates are checked with; nil are the system's.
func NewClient(rules Rules, proxy *url.URL, roots *x509.CertPool) *http.Client {
	return newClient(rules, proxy, roots, net.DefaultResolver)
}

func newClient(rules Rules, proxy *url.URL, roots *x509.CertPool, resolver *net.Resolver) *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout, Resolver: resolver}
	transport := &http.Transport{
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTimeout,
		DisableCompression:     true, // a body that is small on the wire may be gigabytes
		MaxIdleConnsPerHost:    MaxInFlight,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DialContext:            dialer.DialContext,
	}
	if proxy != nil {
		transport.Proxy = http.ProxyURL(proxy)
	} else {
		dialer.Control = rules.guard()
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// guard returns the check of an address that a connection is about to be made
// to. It has one text for all refusals: the difference would reveal what there is
// in the city's network.
func (r Rules) guard() func(network, address string, c syscall.RawConn) error {
	ports := ssrf.WithPorts(443, 8443)
	if r.AllowHTTP {
		ports = ssrf.WithAnyPort()
	}
	public := ssrf.New(ports)
	return func(network, address string, c syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err == nil {
			within := func(p netip.Prefix) bool { return p.Contains(to.Addr().Unmap()) }
			if slices.ContainsFunc(r.AllowNetworks, within) {
				return nil
			}
		}
		if err := public.Safe(network, address, c); err != nil {
			return fmt.Errorf("%w: %w", ledger.ErrAddressRefused, err)
		}
		return nil
	}
}
