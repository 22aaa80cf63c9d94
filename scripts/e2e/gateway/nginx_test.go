// Package gateway_test runs nginx with the gateway's own configuration before
// services that misbehave, and holds it to what clients are promised.
package gateway_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const deploy = "../../../deploy/nginx/"

// away is the address of a replica that is not there: nothing uses port 1.
const away = "127.0.0.1:1"

// A gateway is nginx with the template of Compose and the native stack.
type gateway struct {
	url, tlsURL, accessLog string
	client                 *http.Client
	stop                   func() // ends nginx once its requests are done
}

// start runs nginx before the replicas whose addresses are given.
func start(t *testing.T, reports, notifications []string) gateway {
	t.Helper()
	dir, ports := t.TempDir(), freePorts(t, 2)
	g := gateway{
		url: "http://" + ports[0], tlsURL: "https://" + ports[1], accessLog: filepath.Join(dir, "access.log"),
		client: &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2:  true,
			DisableCompression: true, // so that tests see what was sent
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		}},
	}
	t.Cleanup(g.client.CloseIdleConnections)
	command(t, deploy+"certificate.sh", dir)
	fillIn(t, "templates/gateway.conf.template", filepath.Join(dir, "gateway.conf"), map[string]string{
		"GATEWAY_LISTEN":               ports[0],
		"GATEWAY_LISTEN_TLS":           ports[1],
		"GATEWAY_REPORT_SERVERS":       servers(reports, "fail_timeout=2s"),
		"GATEWAY_NOTIFICATION_SERVERS": servers(notifications, "max_fails=0"),
		"GATEWAY_ACCESS_LOG":           g.accessLog,
		"GATEWAY_CERTIFICATES":         dir,
	})
	fillIn(t, "native.conf.template", filepath.Join(dir, "nginx.conf"), map[string]string{
		"NATIVE_USER": "", "NATIVE_DIR": dir, "NATIVE_NOFILE": "1024",
	})
	g.stop = run(t, dir)
	g.await(t)
	return g
}

// run starts nginx in dir; it ends when stop is called or the test ends.
func run(t *testing.T, dir string) (stop func()) {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx = "/usr/sbin/nginx"
	}
	cmd := exec.Command(nginx, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatalf("start nginx: %v; `make test` installs it", err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// await returns once nginx answers.
func (g gateway) await(t *testing.T) {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		res, err := g.client.Get(g.url + "/gateway/livez")
		if err == nil {
			res.Body.Close()
			return
		}
		select {
		case <-deadline:
			t.Fatalf("nginx does not answer: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
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
	res, err := g.client.Do(req)
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

// fillIn writes a template with its variables replaced, as envsubst does.
func fillIn(t *testing.T, template, file string, values map[string]string) {
	t.Helper()
	text, err := os.ReadFile(deploy + template)
	if err != nil {
		t.Fatalf("read template: %v", err)
	}
	content := string(text)
	for name, value := range values {
		content = strings.ReplaceAll(content, "${"+name+"}", value)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatalf("write configuration: %v", err)
	}
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func servers(addrs []string, parameter string) string {
	var lines strings.Builder
	for _, addr := range addrs {
		fmt.Fprintf(&lines, "server %s %s; ", addr, parameter)
	}
	return lines.String()
}

// nextPort counts up, so that parallel tests never meet; it begins anywhere
// below the ports of outgoing connections.
var nextPort atomic.Int32

func init() { nextPort.Store(11000 + rand.Int32N(8000)) }

// freePorts returns addresses on which nothing listens.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	var addrs []string
	for len(addrs) < n {
		addr := fmt.Sprintf("127.0.0.1:%d", nextPort.Add(1))
		if listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr); err == nil {
			listener.Close()
			addrs = append(addrs, addr)
		}
	}
	return addrs
}
