package config_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/config/configtest"
)

func TestWorkerDefaults(t *testing.T) {
	t.Parallel()
	env := configtest.Environment()
	cfg, err := config.LoadWorker(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	schedule := cfg.Webhook.Ledger().Schedule
	var whole time.Duration
	for _, pause := range schedule {
		whole += pause
	}
	if len(schedule) != 9 || whole < 72*time.Hour || cfg.Webhook.Concurrency != 128 || cfg.Webhook.Proxy != nil || cfg.Retention != 30*24*time.Hour {
		t.Errorf("config is %+v, with a schedule of %s", cfg, whole)
	}
}

// A wrong value stops the start and names its variable alone.
func TestWorkerWrongValues(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"OPERATIONS_ADDR":         {"3014"},
		"DATABASE_URL":            {"", "://geheim"},
		"RABBITMQ_MANAGEMENT_URL": {"amqp://user:geheim@host"},
		"PREFETCH":                {"0"},
		"WEBHOOK_TIMEOUT":         {"0s", "31s", "15"},
		"WEBHOOK_CONCURRENCY":     {"0", "5000"},
		"WEBHOOK_RETRY_DELAYS":    {"0s", "5s,200h"},
		"WEBHOOK_DISABLE_AFTER":   {"1m"},
		"WEBHOOK_PROXY_URL":       {"egress:3128", "ftp://geheim@egress", "://geheim"},
		"WEBHOOK_ALLOW_NETWORKS":  {"0.0.0.0/0"},
		"DELIVERY_RETENTION":      {"24h"},
	} {
		for _, value := range values {
			env := configtest.Environment()
			env[name] = value
			_, err := config.LoadWorker(func(name string) string { return env[name] })
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%s=%q: error %v, want one that names it alone", name, value, err)
			}
		}
	}
}

// The manual has each variable of the sending with its default.
func TestWorkerManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(manual), "## delivery-worker\n")
	for _, of := range []reflect.Type{reflect.TypeFor[webhook.Config](), reflect.TypeFor[config.Worker]()} {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("env"), ",")
			want := "`" + name + "`"
			if value := f.Tag.Get("envDefault"); value != "" && name != "OPERATIONS_ADDR" {
				want = "| `" + name + "` | `" + value + "` |"
			}
			if name != "" && !strings.Contains(section, want) {
				t.Errorf("the manual has no row %s", want)
			}
		}
	}
}
