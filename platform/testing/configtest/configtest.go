// Package configtest holds what the services promise about their environment:
// a test of each service's own package config calls it.
package configtest

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/event"
)

// secret is in every value that must not be shown.
const secret = "geheim"

// A Service is the service under test.
type Service struct {
	Name string // of its section in the manual
	Type reflect.Type
	Load func(getenv func(string) string) error
	// Wrong has values that must stop the start, by variable, beside those of
	// the variables that both services have.
	Wrong map[string][]string
	// Faults is an environment with a fault in each of its variables, some of
	// which cannot even be read.
	Faults map[string]string
}

// Environment returns one that every service starts with.
func Environment() map[string]string {
	return map[string]string{
		"DATABASE_URL":    "postgres://user:" + secret + "@127.0.0.1:5432/cityconnect",
		"RABBITMQ_URL":    "amqp://user:" + secret + "@127.0.0.1:5672/",
		"RECIPIENT_KEY":   event.NewKey("k1"),
		"AUTH_ISSUER":     "https://id.example.org",
		"AUTH_AUDIENCE":   "cityconnect",
		"AUTH_JWT_SECRET": strings.Repeat(secret, 6),
	}
}

// Run tests all promises.
func Run(t *testing.T, s Service) {
	t.Run("wrong values", s.wrongValues)
	t.Run("every fault at once", s.everyFaultAtOnce)
	t.Run("dev mode binds to loopback", s.devModeBindsToLoopback)
	t.Run("manual", s.manual)
	t.Run("example", s.example)
}

// with loads a good environment with changes.
func (s Service) with(changes map[string]string) error {
	env := Environment()
	maps.Copy(env, changes)
	return s.Load(func(name string) string { return env[name] })
}

// A wrong value stops the start, names its variable, and is not shown.
func (s Service) wrongValues(t *testing.T) {
	wrong := map[string][]string{
		"HTTP_ADDR":       {"3002", "nonsense"},
		"OPERATIONS_ADDR": {"3012", "nonsense"},
		"DATABASE_URL":    {"", "postgres://user:geheim@host:port/x", "://geheim"},
		"RABBITMQ_URL":    {"", "http://user:geheim@host", "amqp://user:geheim@host:port/", "amqp://user:geheim@a:5672,,b:5672/"},
		"RECIPIENT_KEY":   {"", "geheim", "k1:geheim"},
		"TOPOLOGY_PREFIX": {"Bandung", "bandung"},
		"LOG_LEVEL":       {"loud"},
		"AUTH_MODE":       {"none"},
		"AUTH_ISSUER":     {""},
		"AUTH_JWT_SECRET": {"geheim"},
	}
	maps.Copy(wrong, s.Wrong)
	if err := s.with(map[string]string{"AUTH_JWT_SECRET": "", "AUTH_ISSUER": "city"}); err == nil || !strings.HasPrefix(err.Error(), "AUTH_ISSUER: ") {
		t.Errorf("an issuer that cannot be asked for its keys: error %v", err)
	}
	for name, values := range wrong {
		for _, value := range values {
			err := s.with(map[string]string{name: value})
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s=%q: error %v, want one that names it alone", name, value, err)
			} else if strings.Contains(err.Error(), secret) {
				t.Errorf("%s=%q: the error shows the secret: %v", name, value, err)
			}
		}
	}
}

func (s Service) everyFaultAtOnce(t *testing.T) {
	faults := map[string]string{
		"HTTP_ADDR": "x", "LOG_LEVEL": "x", "AUTH_MODE": "x", "RECIPIENT_KEY": "", "AUTH_ISSUER": "", "AUTH_AUDIENCE_FILE": "/does/not/exist",
	}
	maps.Copy(faults, s.Faults)
	changes := maps.Clone(faults)
	changes["AUTH_AUDIENCE"] = "" // its file is given instead
	err := s.with(changes)
	if err == nil {
		t.Fatal("no error")
	}
	said := make(map[string]int)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		name, _, _ := strings.Cut(line, ":")
		said[name]++
		if _, wrong := faults[name]; !wrong {
			t.Errorf("%s is blamed for nothing: %s", name, line)
		}
	}
	for name := range faults {
		if said[name] != 1 {
			t.Errorf("%s is reported %d times, want once:\n%v", name, said[name], err)
		}
	}
}

// The development issuer is not for strangers.
func (s Service) devModeBindsToLoopback(t *testing.T) {
	err := s.with(map[string]string{"AUTH_MODE": "dev", "HTTP_ADDR": "0.0.0.0:3002"})
	if err == nil || !strings.Contains(err.Error(), "AUTH_MODE:") {
		t.Errorf("error %v, want a refusal", err)
	}
	if err := s.with(map[string]string{"AUTH_MODE": "dev"}); err != nil {
		t.Errorf("on the loopback: %v", err)
	}
}

// Every variable is in the manual with its default, and the manual has no
// other in the service's section.
func (s Service) manual(t *testing.T) {
	text := readFile(t, "docs/configuration.md")
	section := func(name string) string {
		_, rest, _ := strings.Cut(text, "## "+name+"\n")
		rest, _, _ = strings.Cut(rest, "\n## ")
		return rest
	}
	ours := section(s.Name)
	defaults := make(map[string]string)
	collect(s.Type, defaults)
	for name, value := range defaults {
		line := row(section("Both services")+ours, name)
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

// example shows each default that it has as it is.
func (s Service) example(t *testing.T) {
	defaults := make(map[string]string)
	collect(s.Type, defaults)
	for line := range strings.Lines(readFile(t, ".env.example")) {
		name, value, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), "=")
		if want := defaults[name]; found && want != "" && value != want {
			t.Errorf(".env.example: %s=%s, want the default %s", name, value, want)
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
