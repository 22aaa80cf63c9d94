package config_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/platform/event"
)

// environment is one that is good.
func environment() map[string]string {
	return map[string]string{
		"DATABASE_URL":    "postgres://user:geheim@127.0.0.1:5432/notifications",
		"RABBITMQ_URL":    "amqp://user:geheim@127.0.0.1:5672/",
		"RECIPIENT_KEY":   event.NewKey("k1"),
		"AUTH_ISSUER":     "https://id.example.org",
		"AUTH_AUDIENCE":   "cityconnect",
		"AUTH_JWT_SECRET": strings.Repeat("geheim", 6),
	}
}

func load(env map[string]string) (config.Config, error) {
	return config.Load(func(name string) string { return env[name] })
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	cfg, err := load(environment())
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Addr != "127.0.0.1:3003" || cfg.LogLevel != "info" || cfg.Keys == nil || cfg.Topology != (event.Topology{}) || cfg.Stream.MaxPerUser != 8 {
		t.Errorf("config is %+v", cfg)
	}
}

// A wrong value stops the start, names its variable, and is not shown.
func TestWrongValues(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"HTTP_ADDR":        {"3003", "nonsense"},
		"DATABASE_URL":     {"", "postgres://user:geheim@host:port/x", "://geheim"},
		"RABBITMQ_URL":     {"", "http://user:geheim@host", "amqp://user:geheim@host:port/"},
		"RECIPIENT_KEY":    {"", "geheim", "k1:geheim"},
		"TOPOLOGY_PREFIX":  {"Bandung", "bandung"},
		"LOG_LEVEL":        {"loud"},
		"AUTH_MODE":        {"none"},
		"AUTH_ISSUER":      {""},
		"AUTH_JWT_SECRET":  {"", "geheim"},
		"STREAM_HEARTBEAT": {"1ms", "20", "2m"},
		"STREAM_WRITER":    {"pigeon"},
		"STREAM_MAX":       {"0", "many"},
		"DRAIN_WINDOW":     {"-1s"},
		"RETRY_DELAYS":     {"5s,1s"},
	} {
		for _, value := range values {
			env := environment()
			env[name] = value
			_, err := load(env)
			if err == nil || !strings.Contains(err.Error(), name+":") {
				t.Errorf("%s=%q: error %v, want one that names it", name, value, err)
				continue
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Errorf("%s=%q: the error shows the secret: %v", name, value, err)
			}
		}
	}
}

func TestEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	env := environment()
	env["HTTP_ADDR"], env["LOG_LEVEL"], env["AUTH_MODE"] = "x", "x", "x"
	_, err := load(env)
	for _, name := range []string{"HTTP_ADDR:", "LOG_LEVEL:", "AUTH_MODE:"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name %s", err, name)
		}
	}
}

// The development issuer is not for strangers.
func TestDevModeBindsToLoopback(t *testing.T) {
	t.Parallel()
	env := environment()
	env["AUTH_MODE"], env["HTTP_ADDR"] = "dev", "0.0.0.0:3003"
	if _, err := load(env); err == nil || !strings.Contains(err.Error(), "AUTH_MODE:") {
		t.Errorf("error %v, want a refusal", err)
	}
	env["HTTP_ADDR"] = "127.0.0.1:3003"
	if _, err := load(env); err != nil {
		t.Errorf("on the loopback: %v", err)
	}
}

// Every variable is in the manual with its default, and the manual has no
// other in our section.
func TestManual(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "## Both services\n")
	both, rest, _ := strings.Cut(rest, "\n## ")
	_, rest, _ = strings.Cut(rest, "## notification-service\n")
	ours, _, _ := strings.Cut(rest, "\n## ")
	defaults := make(map[string]string)
	collect(reflect.TypeFor[config.Config](), defaults)
	for name, value := range defaults {
		line := row(both+ours, name)
		if line == "" {
			t.Errorf("%s is not in docs/configuration.md", name)
		} else if value != "" && !strings.Contains(line, "`"+value+"`") {
			t.Errorf("%s: the manual does not give the default %s: %s", name, value, line)
		}
	}
	for line := range strings.Lines(ours) {
		name, isRow := strings.CutPrefix(line, "| `")
		name, _, _ = strings.Cut(name, "`")
		if _, known := defaults[name]; isRow && !known {
			t.Errorf("the manual has %s, which does not exist", name)
		}
	}
}

func row(table, name string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| `"+name+"` |") {
			return line
		}
	}
	return ""
}

// collect finds the variables of t and their defaults.
func collect(t reflect.Type, into map[string]string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("env"), ",")
		switch {
		case name != "" && name != "-":
			into[name] = f.Tag.Get("envDefault")
		case name == "" && f.Type.Kind() == reflect.Struct:
			collect(f.Type, into)
		}
	}
}
