package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/event"
)

// hostile are addresses that lead into a city's own network, in the spellings
// that have got past checks elsewhere.
var hostile = []string{
	"127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.254", "192.168.1.1",
	"169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.254", "192.0.0.1", "192.0.2.1",
	"198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
	"::1", "::", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1",
	"64:ff9b::7f00:1", "2002:7f00:1::", "2001::1", "fc00::1", "fd12:3456::1", "fe80::1", "2001:db8::1",
}

// No spelling of an address in the city's own network is connected to, and all
// are refused with the same text.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	if len(hostile) != 32 {
		t.Fatalf("%d addresses, want 32", len(hostile))
	}
	port, accepted := listen(t, "127.0.0.1:0")
	_, other := listen(t, "127.1.2.3:"+port)
	_, six := listen(t, "[::1]:"+port) // where there is IPv6
	s := newSender(t, NewClient(Rules{AllowHTTP: true}, nil, nil))
	texts := make(map[string]bool)
	for _, host := range hostile {
		a := s.post(t, "http://"+net.JoinHostPort(host, port)+"/")
		if a.Verdict != ledger.Refused || a.Class != ledger.ClassAddressRefused || a.Status != 0 || a.Response != "" {
			t.Errorf("%s: %+v, want it refused", host, a)
		}
		texts[a.Error] = true
	}
	if n := accepted.Load() + other.Load() + six.Load(); len(texts) != 1 || n != 0 {
		t.Errorf("%d texts, %d connections; want 1 text and no connection", len(texts), n)
	}
}

// Public addresses pass, on the ports of HTTPS alone.
func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	guard := Rules{}.guard()
	for address, want := range map[string]bool{
		"93.184.216.34:443": true, "93.184.216.34:8443": true, "[2606:2800:220:1::1]:443": true,
		"93.184.216.34:80": false, "93.184.216.34:5432": false, "[2606:2800:220:1::1]:22": false,
	} {
		network := "tcp4"
		if strings.HasPrefix(address, "[") {
			network = "tcp6"
		}
		if err := guard(network, address, nil); (err == nil) != want {
			t.Errorf("%s: %v, want it allowed: %t", address, err, want)
		}
	}
}

// A name that leads to an allowed address at first and to another afterwards
// (DNS rebinding) gets no connection there.
func TestRebindingName(t *testing.T) {
	t.Parallel()
	port, allowed := listen(t, "127.0.0.2:0")
	_, inner := listen(t, "127.0.0.1:"+port)
	var asked atomic.Int64
	resolver := newResolver(t, func() netip.Addr {
		if asked.Add(1) == 1 {
			return netip.MustParseAddr("127.0.0.2")
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	client := newClient(Rules{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}, nil, nil, resolver)
	s := newSender(t, client)
	for i := range 5 {
		a := s.post(t, "http://receiver.test:"+port+"/")
		if refused := a.Class == ledger.ClassAddressRefused; refused != (i > 0) {
			t.Errorf("request %d: %+v, want only the later ones refused", i+1, a)
		}
		client.CloseIdleConnections() // so that the name is resolved again
	}
	if allowed.Load() != 1 || inner.Load() != 0 {
		t.Errorf("%d connections to the first address, %d to the second; want 1 and 0", allowed.Load(), inner.Load())
	}
}

// A redirect is a failure, wherever it leads.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	port, metadata := listen(t, "127.0.0.3:0")
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{"http://169.254.169.254/latest/meta-data/", "http://127.0.0.3:" + port + "/"} {
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, location, status)
			}))
			t.Cleanup(receiver.Close)
			a := newSender(t, NewClient(loopback, nil, nil)).post(t, receiver.URL)
			if a.Verdict != ledger.Failed || a.Status != status {
				t.Errorf("%d to %s: %+v, want a failure", status, location, a)
			}
		}
	}
	if metadata.Load() != 0 {
		t.Errorf("%d connections to where the redirects lead, want none", metadata.Load())
	}
}

// A proxy in the environment is for other programs. One that is configured gets
// everything.
func TestProxy(t *testing.T) {
	var proxied atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { proxied.Add(1) }))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	resolver := newResolver(t, func() netip.Addr { return netip.MustParseAddr("127.0.0.1") })
	port, accepted := listen(t, "127.0.0.1:0")
	a := newSender(t, newClient(loopback, nil, nil, resolver)).post(t, "http://receiver.test:"+port+"/")
	if a.Verdict != ledger.Delivered || proxied.Load() != 0 || accepted.Load() != 1 {
		t.Errorf("%+v with %d requests by the environment's proxy and %d direct ones, want only a direct one", a, proxied.Load(), accepted.Load())
	}

	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	a = newSender(t, NewClient(Rules{AllowHTTP: true}, address, nil)).post(t, "http://receiver.example.org/")
	if a.Verdict != ledger.Delivered || proxied.Load() != 1 {
		t.Errorf("%+v with %d requests by the configured proxy, want one", a, proxied.Load())
	}
}

// Each status leads to what the table says.
func TestStatuses(t *testing.T) {
	t.Parallel()
	status, header := 0, make(http.Header)
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	s := newSender(t, NewClient(loopback, nil, receiver.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs))
	want := func(status int) ledger.Verdict {
		switch {
		case status < 300:
			return ledger.Delivered
		case status < 400, status >= 500, status == 408, status == 409, status == 401, status == 403, status == 404:
			return ledger.Failed
		case status == 410:
			return ledger.Gone
		case status == 425:
			return ledger.TooEarly
		case status == 429:
			return ledger.TooMany
		}
		return ledger.Refused
	}
	for status = 200; status < 600; status++ {
		a := s.post(t, receiver.URL)
		if a.Verdict != want(status) || a.Status != status || a.After != 0 {
			t.Errorf("%d: %+v, want %s", status, a, want(status))
		}
	}

	for _, tt := range []struct {
		status   int
		value    string
		want     ledger.Verdict
		from, to time.Duration
	}{
		{503, "120", ledger.TooMany, 2 * time.Minute, 2 * time.Minute},
		{503, "soon", ledger.Failed, 0, 0},
		{429, "7", ledger.TooMany, 7 * time.Second, 7 * time.Second},
		{429, "-1", ledger.TooMany, 0, 0},
		{425, "3", ledger.TooEarly, 3 * time.Second, 3 * time.Second},
		{429, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), ledger.TooMany, 59 * time.Minute, time.Hour},
		{429, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), ledger.TooMany, 0, 0},
		{500, "120", ledger.Failed, 0, 0},
		{429, "99999999999999999999", ledger.TooMany, 0, 0},
	} {
		status = tt.status
		header.Set("Retry-After", tt.value)
		if a := s.post(t, receiver.URL); a.Verdict != tt.want || a.After < tt.from || a.After > tt.to {
			t.Errorf("%d with Retry-After %q: %+v, want %s after %s", tt.status, tt.value, a, tt.want, tt.to)
		}
	}
}

// Answers that are meant to harm cost a second and some kilobytes at most.
func TestHarmfulAnswers(t *testing.T) {
	t.Parallel()
	const huge = 10 << 30
	var written atomic.Int64
	ended := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/hang", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-ended
	})
	mux.HandleFunc("/mute", func(http.ResponseWriter, *http.Request) { <-ended })
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(int64(huge)))
		for piece := []byte(strings.Repeat("a", 1<<20)); ; {
			n, err := w.Write(piece)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("the request accepts %q, want no encoding", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte("\x1f\x8b\x08\x00 not unpacked"))
	})
	mux.HandleFunc("/reset", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*tls.Conn).NetConn().(*net.TCPConn).SetLinger(0)
		_ = conn.(*tls.Conn).NetConn().Close()
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("a", 1<<20))
	})
	mux.HandleFunc("/binary", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a\x00b\xffc")) })
	receiver := httptest.NewTLSServer(mux)
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { close(ended) })
	s := newSender(t, NewClient(loopback, nil, receiver.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs))
	for _, tt := range []struct {
		path     string
		verdict  ledger.Verdict
		class    string
		response string // its beginning
	}{
		{"/hang", ledger.Delivered, "2xx", ""},
		{"/mute", ledger.Failed, "timeout", ""},
		{"/huge", ledger.Delivered, "2xx", "aaaa"},
		{"/bomb", ledger.Delivered, "2xx", "\x1f\uFFFD\x08\uFFFD not unpacked"},
		{"/reset", ledger.Failed, "connection", ""},
		{"/header", ledger.Failed, "connection", ""},
		{"/binary", ledger.Delivered, "2xx", "a\uFFFDb\uFFFDc"},
	} {
		limit := time.Minute
		if tt.path == "/mute" {
			limit = 2 * time.Second
		}
		a := s.postWithin(t, receiver.URL+tt.path, limit)
		if a.Verdict != tt.verdict || a.Class != tt.class || !strings.HasPrefix(a.Response, tt.response) || len(a.Response) > keptResponse {
			t.Errorf("%s: %+v, want %s, %s", tt.path, a, tt.verdict, tt.class)
		}
	}
	if n := written.Load(); n > 64<<20 { // what the buffers of the connection take
		t.Errorf("%d bytes of the endless answer were taken", n)
	}
}

// A host that is not reached over TLS with a known certificate is distinguished from
// one that does not answer.
func TestConnectionsThatFail(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	receiver := httptest.NewTLSServer(mux)
	t.Cleanup(receiver.Close)
	s := newSender(t, NewClient(loopback, nil, receiver.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs))
	stranger := newSender(t, NewClient(loopback, nil, nil)) // who does not know the certificate
	if a := stranger.post(t, receiver.URL); a.Verdict != ledger.Failed || a.Class != "tls" {
		t.Errorf("unknown certificate: %+v, want a failure of class tls", a)
	}
	plain := httptest.NewServer(mux)
	t.Cleanup(plain.Close)
	if a := s.post(t, strings.Replace(plain.URL, "http:", "https:", 1)); a.Verdict != ledger.Failed || a.Class != "tls" {
		t.Errorf("no TLS: %+v, want a failure of class tls", a)
	}
	if a := s.post(t, "https://127.0.0.1:1/"); a.Class != "connection" {
		t.Errorf("closed port: %+v, want a failure of class connection", a)
	}
	silent := newResolver(t, func() netip.Addr { return netip.Addr{} })
	if a := newSender(t, newClient(loopback, nil, nil, silent)).post(t, "https://receiver.test/"); a.Class != "dns" {
		t.Errorf("unknown name: %+v, want a failure of class dns", a)
	}
}

// loopback are rules for receivers of a test.
var loopback = Rules{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}

// A testSender makes single requests.
type testSender struct{ *Sender }

func newSender(t *testing.T, client *http.Client) testSender {
	t.Helper()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return testSender{NewSender(nil, keys, client, prometheus.NewRegistry(), zerolog.Nop())}
}

// post sends to what answers.
func (s testSender) post(t *testing.T, address string) ledger.Answer {
	t.Helper()
	return s.postWithin(t, address, time.Minute)
}

func (s testSender) postWithin(t *testing.T, address string, limit time.Duration) ledger.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return s.send(ctx, address, nil, &ledger.Delivery{MessageID: "id", Body: []byte("{}")})
}

// listen counts the connections to an address, and answers each with 200. It
// returns the port.
func listen(t *testing.T, address string) (port string, accepted *atomic.Int64) {
	t.Helper()
	accepted = new(atomic.Int64)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Logf("listen on %s: %v", address, err)
		return "", accepted
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		ReadHeaderTimeout: time.Minute,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				accepted.Add(1)
			}
		},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	_, port, err = net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, accepted
}

// newResolver returns a resolver that asks a server of the test, which answers
// every name with what answer returns.
func newResolver(t *testing.T, answer func() netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for packet := make([]byte, 1500); ; {
			n, client, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if err := m.Unpack(packet[:n]); err != nil {
				t.Errorf("unpack question: %v", err)
				return
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				if addr := answer(); addr.IsValid() {
					m.Answers = []dnsmessage.Resource{{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
						Body:   &dnsmessage.AResource{A: addr.As4()},
					}}
				} else {
					m.RCode = dnsmessage.RCodeNameError
				}
			}
			reply, err := m.Pack()
			if err != nil {
				t.Errorf("pack answer: %v", err)
				return
			}
			_, _ = conn.WriteTo(reply, client)
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}
