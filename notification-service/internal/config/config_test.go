package config_test

import (
	"reflect"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/configtest"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	env := configtest.Environment()
	cfg, err := config.Load(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Addr != "127.0.0.1:3003" || cfg.LogLevel != "info" || cfg.Keys == nil || cfg.Topology != (event.Topology{}) || cfg.Stream.MaxPerUser != 8 {
		t.Errorf("config is %+v", cfg)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	configtest.Run(t, configtest.Service{
		Name: "notification-service",
		Type: reflect.TypeFor[config.Config](),
		Load: func(getenv func(string) string) error { _, err := config.Load(getenv); return err },
		Wrong: map[string][]string{
			"RABBITMQ_MANAGEMENT_URL": {"geheim", "amqp://user:geheim@host:5672/", "http://user:geheim@host:port/"},
			"STREAM_HEARTBEAT":        {"1ms", "20", "2m"},
			"STREAM_MAX":              {"0", "many"},
			"STREAM_MAX_FEED":         {"0", "20000"},
			"DRAIN_WINDOW":            {"-1s"},
			"RETRY_DELAYS":            {"5s,1s"},
			"PAGE_MAP_FILE":           {"/does/not/exist"},
			"PAGE_MAP_CENTER":         {"106.8,-6.6"},
			"MAP_BOUNDS":              {"Bogor", "3,2,1,4"},
			"COMMENTS":                {"yes", "1"},
			"CITY_LOGO":               {"/does/not/exist"},
			"CITY_NAME":               {"<geheim>"},
			"CITY_LANGUAGES":          {"geheim", "id,id"},
			"CITY_WORDS":              {"/does/not/exist"},
			"CITY_LINKS":              {"geheim", "privacy=geheim", "emergency=geheim"},
			"GEOCODER_URL":            {"nominatim.example.org/geheim", "ftp://geheim/search", "https://example.org/geheim"},
			"GEOCODER_RATE":           {"0", "often"},
			"NOTIFICATIONS_RETENTION": {"a year", "1h", "365"},
			"MAIL_FROM":               {"geheim", "ann@localhost"},
			"MAIL_BOUNCE_SECRET":      {"geheim"},
			"MAIL_READ_FIRST":         {"-1s", "2h", "soon"},
			"MAIL_OFFICIALS":          {"geheim", "geheim@localhost"},
		},
		Faults: map[string]string{
			"STREAM_MAX": "many", "STREAM_HEARTBEAT": "2m", "PREFETCH": "0", "RETRY_DELAYS": "1s,soon",
			"PAGE_MAP_FILE": "nowhere", "PAGE_MAP_CENTER": "here", "RABBITMQ_MANAGEMENT_URL": "nowhere",
		},
	})
}

// Compose, the chart and .env.example know each variable of notification-service.
func TestPassed(t *testing.T) {
	t.Parallel()
	configtest.Passed(t, "notification-service", reflect.TypeFor[config.Config]())
}
