package e2e

import (
	"context"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/eventually"
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
			{"RELAY_WINDOW", "many"}, {"RELAY_WINDOW", "0"}, {"RELAY_LEASE", "1s"}, {"RELAY_MAX_ATTEMPTS", "0"},
		},
		"notification-service": {
			{"PREFETCH", "many"}, {"PREFETCH", "0"}, {"RETRY_MAX_ATTEMPTS", "-1"},
			{"RETRY_DELAYS", "soon"}, {"CONSUMER_BATCH_WAIT", "-1s"}, {"DRAIN_WINDOW", "-1s"}, {"STREAM_HEARTBEAT", "often"},
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
