// Package gateway_test holds the gateway, before services that misbehave, to
// what clients are promised.
package gateway_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// away is the address of a replica that is not there: nothing uses port 1.
const away = "127.0.0.1:1"

// A gateway is one that tests make requests to.
type gateway struct{ gatewaytest.Gateway }

// start runs a gateway before the replicas whose addresses are given. Further
// settings come as names and values.
func start(t *testing.T, reports, notifications []string, settings ...string) gateway {
	t.Helper()
	return gateway{gatewaytest.Start(t, reports, notifications, settings...)}
}

// do sends a request and returns the answer with its whole body.
func (g gateway) do(t *testing.T, method, url string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatalf("make request: %v", err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Host = req.Header.Get("Host")
	res, err := g.Client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: read answer: %v", method, url, err)
	}
	return res, string(content)
}

// serve runs a replica and returns its address.
func serve(t *testing.T, handler http.HandlerFunc) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// serveAt runs a replica at the address.
func serveAt(t *testing.T, addr string, handler http.HandlerFunc) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return string(content)
}
