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
	url, tlsURL, accessLog, errorLog string
	client                           *http.Client
	pid                              int
	stop                             func() // ends nginx once its requests are done
}

// start runs nginx before the replicas whose addresses are given. Further
// settings come as names and values.
func start(t *testing.T, reports, notifications []string, settings ...string) gateway {
	t.Helper()
	dir, ports := t.TempDir(), freePorts(t, 2)
	g := gateway{
		url: "http://" + ports[0], tlsURL: "https://" + ports[1], accessLog: filepath.Join(dir, "access.log"),
		errorLog: filepath.Join(dir, "error.log"),
		client: &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2:  true,
			DisableCompression: true, // so that tests see what was sent
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		}},
	}
	t.Cleanup(g.client.CloseIdleConnections)
	command(t, deploy+"certificate.sh", dir)
	values := map[string]string{
		"GATEWAY_LISTEN":               ports[0],
		"GATEWAY_LISTEN_TLS":           ports[1],
		"GATEWAY_REPORT_SERVERS":       servers(reports),
		"GATEWAY_NOTIFICATION_SERVERS": servers(notifications),
		"GATEWAY_ACCESS_LOG":           g.accessLog,
		"GATEWAY_CERTIFICATES":         dir,
		"GATEWAY_TRUSTED_PROXY":        "unix:",
		"GATEWAY_HTTPS_ORIGIN":         "",
	}
	for i := 0; i < len(settings); i += 2 {
		values[settings[i]] = settings[i+1]
	}
	fillIn(t, "templates/gateway.conf.template", filepath.Join(dir, "gateway.conf"), values)
	fillIn(t, "native.conf.template", filepath.Join(dir, "nginx.conf"), map[string]string{
		"NATIVE_USER": "", "NATIVE_DIR": dir, "NATIVE_NOFILE": "1024",
	})
	errors, err := os.Create(g.errorLog)
	if err != nil {
		t.Fatalf("create log: %v", err)
	}
	t.Cleanup(func() { errors.Close() })
	g.pid, g.stop = run(t, dir, errors)
	await(t, g.client, g.url+"/gateway/livez")
	return g
}

// run starts nginx in dir; it ends when stop is called or the test ends.
func run(t *testing.T, dir string, log io.Writer) (pid int, stop func()) {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx = "/usr/sbin/nginx"
	}
	cmd := exec.Command(nginx, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr")
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start nginx: %v; `make test` installs it", err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	return cmd.Process.Pid, stop
}

// await returns once url is answered.
func await(t *testing.T, client *http.Client, url string) {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		res, err := client.Get(url)
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
	req.Host = req.Header.Get("Host")
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
	content := read(t, deploy+template)
	for name, value := range values {
		content = strings.ReplaceAll(content, "${"+name+"}", value)
	}
	write(t, file, content)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return string(content)
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func servers(addrs []string) string {
	var lines strings.Builder
	for _, addr := range addrs {
		fmt.Fprintf(&lines, "server %s max_fails=0; ", addr)
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
