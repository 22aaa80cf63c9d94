package e2e

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A wrong variable stops the start and names itself, without showing a secret.
func TestWrongEnvironmentStopsTheStart(t *testing.T) {
	t.Parallel()
	const hidden = "hunter2"
	good := map[string]string{
		"HTTP_ADDR": "127.0.0.1:0", "OPERATIONS_ADDR": "127.0.0.1:0", "DATABASE_URL": "postgres://postgres@127.0.0.1:1/none", "RABBITMQ_URL": nowhere,
		"RECIPIENT_KEY": event.NewKey("k1"), "AUTH_ISSUER": issuer, "AUTH_AUDIENCE": audience, "AUTH_JWT_SECRET": secret,
	}
	both := []struct{ variable, value string }{
		{"HTTP_ADDR", "3002"},
		{"OPERATIONS_ADDR", "3012"},
		{"DATABASE_URL", ""},
		{"DATABASE_URL", "postgres://u:" + hidden + "@:port:/x"},
		{"RABBITMQ_URL", ""},
		{"RABBITMQ_URL", "http://u:" + hidden + "@broker"},
		{"RECIPIENT_KEY", "k1:" + hidden},
		{"RECIPIENT_KEY", ""},
		{"TOPOLOGY_PREFIX", "Kota Bandung"},
		{"LOG_LEVEL", "loud"},
		{"AUTH_MODE", "open"},
		{"AUTH_ISSUER", ""},
		{"AUTH_AUDIENCE", ""},
		{"AUTH_JWT_SECRET", hidden},
		{"AUTH_JWKS_URL", "https://id.example.org/certs"}, // beside the secret
	}
	only := map[string][]struct{ variable, value string }{
		"report-service": {
			{"RELAY_LEASE", "soon"}, {"RELAY_LEASE", "1s"}, {"QUESTION_DAYS", "0"},
		},
		"notification-service": {
			{"PREFETCH", "many"}, {"PREFETCH", "0"}, {"RETRY_MAX_ATTEMPTS", "-1"},
			{"RETRY_DELAYS", "soon"}, {"RECONCILIATION_AFTER", "1s"}, {"DRAIN_WINDOW", "-1s"}, {"STREAM_HEARTBEAT", "often"},
		},
	}
	for name, own := range only {
		for _, tt := range append(both, own...) {
			t.Run(name+" "+tt.variable+"="+tt.value, func(t *testing.T) {
				t.Parallel()
				env := maps.Clone(good)
				env[tt.variable] = tt.value
				out := startAndFail(t, name, env)
				if !strings.Contains(out, tt.variable) {
					t.Errorf("the output does not name the variable:\n%s", out)
				}
				if strings.Contains(out, hidden) {
					t.Errorf("the output shows the secret:\n%s", out)
				}
			})
		}
	}
}

// Development sign-in is refused where strangers could use it.
func TestDevelopmentSignInIsRefusedOutside(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"report-service", "notification-service"} {
		out := startAndFail(t, name, map[string]string{
			"HTTP_ADDR": "192.0.2.1:3002", "DATABASE_URL": "postgres://postgres@127.0.0.1:1/none", "RABBITMQ_URL": nowhere,
			"RECIPIENT_KEY": event.NewKey("k1"), "AUTH_MODE": "dev", "AUTH_ISSUER": issuer, "AUTH_AUDIENCE": audience,
			"AUTH_JWT_SECRET": secret, "AUTH_DEV_NETWORK": "172.28.0.0/16",
		})
		if !strings.Contains(out, "AUTH_MODE") || !strings.Contains(out, "AUTH_DEV_NETWORK") {
			t.Errorf("%s does not say why:\n%s", name, out)
		}
	}
}

// Each program says which build it is, as its log and its metrics do.
func TestProgramsSayWhichBuildTheyAre(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"report-service", "photo-worker", "notification-service", "delivery-worker"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(binaries, name), "--version").CombinedOutput()
		if err != nil || !regexp.MustCompile(`^`+name+` \S+ \(revision \S+, go1\.\S+\)\n$`).Match(out) {
			t.Errorf("%s --version: error %v, %q", name, err, out)
		}
	}
	p := newProcess(t, "photo-worker", map[string]string{
		"OPERATIONS_ADDR": "127.0.0.1:0", "DATABASE_URL": "postgres://postgres@127.0.0.1:1/none", "RABBITMQ_URL": nowhere, "RECIPIENT_KEY": event.NewKey("k1"),
	})
	p.log.parts = 1
	p.start()
	_, metrics, err := operation{http.MethodGet, "/metrics", nil, "/metrics"}.send(t.Context(), p.operations(), "")
	if err != nil || !regexp.MustCompile(`(?m)^cityconnect_build_info\{go_version="go1[^"]+",revision="[^"]+",version="[^"]+"\} 1$`).Match(metrics) {
		t.Errorf("the metrics do not say which build it is (error: %v):\n%s", err, metrics)
	}
	if serving := p.log.messages("serving"); len(serving) != 1 || !strings.Contains(serving[0], `"version":"`) || !strings.Contains(serving[0], `"revision":"`) {
		t.Errorf("the log does not say which build it is: %q", serving)
	}
}

// A password that the database refuses, and a database that is not there, stop the
// start with their names in words; a database that is away does not.
func TestDatabaseThatRefusesStopsTheStart(t *testing.T) {
	t.Parallel()
	server := must(url.Parse(pgtest.Report(t).Config().ConnString()))
	for want, change := range map[string]func(u *url.URL){
		"the database refuses the ":                        func(u *url.URL) { u.User = url.UserPassword("nobody_of_that_name", "hunter2") },
		"the server has no such database (SQLSTATE 3D000)": func(u *url.URL) { u.Path = "/no_such_database" },
	} {
		address := *server
		change(&address)
		for _, name := range []string{"report-service", "photo-worker", "notification-service", "delivery-worker"} {
			out := startAndFail(t, name, map[string]string{
				"HTTP_ADDR": "127.0.0.1:0", "OPERATIONS_ADDR": "127.0.0.1:0", "DATABASE_URL": address.String(), "RABBITMQ_URL": nowhere,
				"RECIPIENT_KEY": event.NewKey("k1"), "AUTH_ISSUER": issuer, "AUTH_AUDIENCE": audience, "AUTH_JWT_SECRET": secret,
				"PHOTO_STORE": "file://" + t.TempDir(),
			})
			if !strings.Contains(out, name+": DATABASE_URL: "+want) || strings.Contains(out, "hunter2") {
				t.Errorf("%s does not say %q, or shows the password:\n%s", name, want, out)
			}
		}
	}
}

// startAndFail starts a service, wants it to refuse, and returns its output.
func startAndFail(t *testing.T, name string, env map[string]string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience) // of one that starts after all
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, name))
	cmd.Env = []string{} // nothing of ours
	for variable, value := range env {
		cmd.Env = append(cmd.Env, variable+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s started", name)
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("%s ended with %d, want 1", name, code)
	}
	return string(out)
}
