package config_test

import (
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/testing/configtest"
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
		"WEBHOOK_RETRY_DELAYS":    {"0s", "5s,200h"},
		"WEBHOOK_PROXY_URL":       {"egress:3128", "ftp://geheim@egress", "://geheim"},
		"REPORT_SERVICE_URL":      {"report-service:3002", "://geheim"},
		"WEBHOOK_ALLOW_NETWORKS":  {"0.0.0.0/0"},
		"DELIVERY_RETENTION":      {"24h"},
		"MAIL_RATE":               {"0", "many"},
		"MAIL_RETRY_DELAYS":       {"0s", "1m,72h"},
		"DIGEST_SPREAD":           {"-1s", "7h"},
		"MAIL_OFFICIALS":          {"geheim", "Officials <a@geheim.example.org>"},
		"MAIL_OPERATORS":          {"geheim@localhost"},
		"MAIL_NOTICES_LANGUAGE":   {"fr"},
		"CITY_NAME":               {"<geheim>"},
		"CITY_WORDS":              {"/does/not/exist"},
		"CITY_LINKS":              {"geheim", "emergency=geheim"},
		"PUSH_ALLOW_HOSTS":        {"https://geheim.example.org", "*", "fcm.googleapis.com,*geheim.example.org"},
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

// A mail server needs a sender, and the address of the page that its mails lead
// to. Nothing that is wrong is shown.
func TestWorkerMail(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"MAIL_URL": "smtps://user:geheim@smtp.example.org", "MAIL_FROM": "CityConnect <no-reply@city.example.org>",
		"PUBLIC_URL": "https://city.example.org/",
	}
	load := func(name, value string) (config.Worker, error) {
		env := configtest.Environment()
		maps.Copy(env, good)
		if name != "" {
			env[name] = value
		}
		return config.LoadWorker(func(name string) string { return env[name] })
	}
	cfg, err := load("", "")
	if err != nil {
		t.Fatal(err)
	}
	if server := cfg.Mail.Server; server.Addr() != "smtp.example.org:465" || server.TLS != email.Implicit || server.Password != "geheim" ||
		cfg.Mail.From.Address != "no-reply@city.example.org" || cfg.Mail.PublicURL != "https://city.example.org" {
		t.Errorf("config is %+v", cfg.Mail)
	}
	for from, want := range map[string]string{"no-reply@city.example.org": "Kota Bogor", "Bogor Reports <no-reply@city.example.org>": "Bogor Reports"} {
		good["CITY_NAME"] = "Kota Bogor"
		if cfg, err := load("MAIL_FROM", from); err != nil || cfg.Mail.From.Name != want {
			t.Errorf("MAIL_FROM=%s: mails are from %+v (error %v), want %s", from, cfg.Mail.From, err, want)
		}
	}
	for name, values := range map[string][]string{
		"MAIL_URL":           {"smtp.example.org:25", "http://geheim@smtp.example.org", "smtp://geheim@:587", "smtp://host:geheim", "smtps://host/path"},
		"MAIL_FROM":          {"", "geheim", "no-reply@localhost"},
		"MAIL_BOUNCE_DOMAIN": {"geheim", "a b.example.org"},
		"MAIL_DKIM_KEY":      {"geheim"},
		"PUBLIC_URL":         {"", "city.example.org", "https://user:geheim@city.example.org", "https://city.example.org/app"},
	} {
		for _, value := range values {
			_, err := load(name, value)
			if err == nil || !strings.Contains(err.Error(), name+": ") || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%s=%q: error %v, want one that names it", name, value, err)
			}
		}
	}
}

// A key to push with needs a contact that push services can reach, in both programs.
// Nothing that is wrong is shown.
func TestPush(t *testing.T) {
	t.Parallel()
	key, _ := push.NewKey()
	for program, load := range map[string]func(getenv func(string) string) (*push.Config, error){
		"notification-service": func(getenv func(string) string) (*push.Config, error) {
			cfg, err := config.Load(getenv)
			return &cfg.Push, err
		},
		"delivery-worker": func(getenv func(string) string) (*push.Config, error) {
			cfg, err := config.LoadWorker(getenv)
			return &cfg.Push, err
		},
	} {
		with := func(name, value string) (*push.Config, error) {
			env := configtest.Environment()
			env["PUSH_VAPID_KEY"], env["PUSH_CONTACT"] = key, "mailto:operations@city.example.org"
			env[name] = value
			return load(func(name string) string { return env[name] })
		}
		cfg, err := with("", "")
		if err != nil || !cfg.Enabled() || len(cfg.AllowHosts) != 5 || len(cfg.PublicKey()) != 87 {
			t.Errorf("%s: config %+v, %v", program, cfg, err)
		}
		if cfg, err := with("PUSH_VAPID_KEY", ""); err != nil || cfg.Enabled() {
			t.Errorf("%s: pushes without a key, %v", program, err)
		}
		for name, values := range map[string][]string{
			"PUSH_VAPID_KEY": {"geheim", key[1:], key + "AAAA"},
			"PUSH_CONTACT":   {"", "geheim", "mailto:geheim@localhost", "http://geheim.example.org"},
		} {
			for _, value := range values {
				_, err := with(name, value)
				if err == nil || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "geheim") {
					t.Errorf("%s: %s=%q: error %v, want one that names it alone", program, name, value, err)
				}
			}
		}
	}
}

// The manual has each variable of the sending with its default, or names it where it
// says which are those of notification-service.
func TestWorkerManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(manual), "## delivery-worker\n")
	for _, of := range []reflect.Type{reflect.TypeFor[webhook.Config](), reflect.TypeFor[email.Config](), reflect.TypeFor[push.Config](), reflect.TypeFor[config.Worker]()} {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("env"), ",")
			row := "`" + name + "`"
			if value := f.Tag.Get("envDefault"); value != "" && name != "OPERATIONS_ADDR" {
				row = "| `" + name + "` | `" + value + "` |"
			}
			if name != "" && !(strings.Contains(string(manual), row) && strings.Contains(section, "`"+name+"`")) {
				t.Errorf("the manual has no row %s", row)
			}
		}
	}
}

// Compose, the chart and .env.example know each variable of delivery-worker.
func TestWorkerPassed(t *testing.T) {
	t.Parallel()
	configtest.Passed(t, "delivery-worker", reflect.TypeFor[config.Worker]())
}
