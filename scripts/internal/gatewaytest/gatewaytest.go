// Package gatewaytest runs nginx with the gateway's own configuration.
package gatewaytest

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A Gateway is nginx with the template of Compose and the native stack.
type Gateway struct {
	URL, TLSURL         string
	AccessLog, ErrorLog string // files
	Client              *http.Client
	PID                 int
	Stop                func() // ends nginx once its requests are done
}

// Start runs nginx before the replicas whose addresses are given, until the
// test ends. Further settings come as names and values.
func Start(t testing.TB, reports, notifications []string, settings ...string) Gateway {
	t.Helper()
	deploy, dir, ports := Folder(), t.TempDir(), FreePorts(t, 2)
	g := Gateway{
		URL: "http://" + ports[0], TLSURL: "https://" + ports[1], AccessLog: filepath.Join(dir, "access.log"),
		ErrorLog: filepath.Join(dir, "error.log"),
		Client: &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2:  true,
			DisableCompression: true, // so that tests see what was sent
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		}},
	}
	t.Cleanup(g.Client.CloseIdleConnections)
	if out, err := exec.CommandContext(t.Context(), filepath.Join(deploy, "certificate.sh"), dir).CombinedOutput(); err != nil {
		t.Fatalf("make certificate: %v\n%s", err, out)
	}
	values := map[string]string{
		"GATEWAY_LISTEN":               ports[0],
		"GATEWAY_LISTEN_TLS":           ports[1],
		"GATEWAY_REPORT_SERVERS":       servers(reports),
		"GATEWAY_NOTIFICATION_SERVERS": servers(notifications),
		"GATEWAY_ACCESS_LOG":           g.AccessLog,
		"GATEWAY_CERTIFICATES":         dir,
		"GATEWAY_TRUSTED_PROXY":        "unix:",
		"GATEWAY_HTTPS_ORIGIN":         "",
		"GATEWAY_LIMITS":               "on",
		"GATEWAY_READS":                "300",
		"GATEWAY_WRITES":               "20",
		"GATEWAY_STREAMS":              "500",
	}
	for i := 0; i < len(settings); i += 2 {
		values[settings[i]] = settings[i+1]
	}
	fillIn(t, filepath.Join(deploy, "templates", "gateway.conf.template"), filepath.Join(dir, "gateway.conf"), values)
	fillIn(t, filepath.Join(deploy, "native.conf.template"), filepath.Join(dir, "nginx.conf"), map[string]string{
		"NATIVE_USER": "", "NATIVE_DIR": dir, "NATIVE_NOFILE": "1024",
	})
	errors, err := os.Create(g.ErrorLog)
	if err != nil {
		t.Fatalf("create log: %v", err)
	}
	t.Cleanup(func() { errors.Close() })
	g.PID, g.Stop = Nginx(t, dir, errors)
	Await(t, g.Client, g.URL+"/gateway/livez")
	return g
}

// Folder returns the folder of the gateway's configuration.
func Folder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "deploy", "nginx")
}

// Nginx starts nginx in dir, with the nginx.conf that is there; it ends when
// stop is called or the test ends.
func Nginx(t testing.TB, dir string, log io.Writer) (pid int, stop func()) {
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

// Await returns once url is answered.
func Await(t testing.TB, client *http.Client, url string) {
	t.Helper()
	eventually.NothingMissing(t, "nginx answers", func() string {
		res, err := client.Get(url)
		if err != nil {
			return err.Error()
		}
		res.Body.Close()
		return ""
	})
}

// fillIn writes a template with its variables replaced, as envsubst does.
func fillIn(t testing.TB, template, file string, values map[string]string) {
	t.Helper()
	text, err := os.ReadFile(template)
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

func servers(addrs []string) string {
	var lines strings.Builder
	for _, addr := range addrs {
		fmt.Fprintf(&lines, "server %s max_fails=0; ", addr)
	}
	return lines.String()
}

// FreePorts returns addresses on which nothing listens.
func FreePorts(t testing.TB, n int) []string {
	t.Helper()
	ports, err := devserver.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	addrs := make([]string, n)
	for i, port := range ports {
		addrs[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	return addrs
}
