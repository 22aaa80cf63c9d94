package config_test

import (
	"reflect"
	"testing"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/configtest"
	"github.com/cityconnect/cityconnect/report-service/internal/config"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	env := configtest.Environment()
	cfg, err := config.Load(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Addr != "127.0.0.1:3002" || cfg.LogLevel != "info" || cfg.Keys == nil || cfg.Topology != (event.Topology{}) || cfg.Relay.Window != 512 {
		t.Errorf("config is %+v", cfg)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	configtest.Run(t, configtest.Service{
		Name: "report-service",
		Type: reflect.TypeFor[config.Config](),
		Load: func(getenv func(string) string) error { _, err := config.Load(getenv); return err },
		Wrong: map[string][]string{
			"RELAY_LEASE":     {"1s", "14"},
			"AUDIT_RETENTION": {"23h", "ever"},
			"MAP_BOUNDS":      {"Bogor", "1,4,3,2"},
			"CITY_NAME":       {"<geheim>"},
			"CITY_LANGUAGES":  {"geheim", "id,id"},
			"CITY_WORDS":      {"/does/not/exist"},
			"COMMENTS":        {"yes", "1"},
			"OPEN311":         {"yes", "1"},
			"QUESTION_DAYS":   {"0", "61", "10d"},
			"VERDICT_DAYS":    {"-1", "91", "ten"},

			"RESOLVE_NEEDS_PHOTO": {"yes", "on"}, // without a storage of photos

			"PHOTO_STORE": {"photos", "s3://photos", "s3://user:geheim@photos?endpoint=https://s3.example.org"},

			"PHOTO_S3_SECRET_KEY": {"geheim"}, // without the other
		},
		Faults: map[string]string{
			"RELAY_LEASE": "1s", "QUESTION_DAYS": "soon", "OPEN311": "yes",
		},
	})
}

// Compose, the chart and .env.example know each variable of report-service.
func TestPassed(t *testing.T) {
	t.Parallel()
	configtest.Passed(t, "report-service", reflect.TypeFor[config.Config]())
}
