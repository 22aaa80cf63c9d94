package config_test

import (
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/configtest"
	"github.com/cityconnect/cityconnect/report-service/internal/config"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func TestWorkerDefaults(t *testing.T) {
	t.Parallel()
	env := configtest.Environment()
	env["PHOTO_STORE"] = "file:///srv/photos"
	cfg, err := config.LoadWorker(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	consumer := cfg.Consumer()
	if cfg.Memory != 512<<20 || cfg.Budget() <= 0 || cfg.Budget() >= int64(cfg.Memory) || cfg.Moderation != "off" ||
		consumer.Workers != min(max(2, runtime.GOMAXPROCS(0)-1), 8) || cfg.Lanes().Large >= consumer.Workers || consumer.Prefetch != 1 || consumer.BatchSize != 1 {
		t.Errorf("config is %+v, consumer %+v", cfg, consumer)
	}
	if faults := consumer.Validate(); len(faults) > 0 {
		t.Errorf("the consumer's configuration: %v", faults)
	}
}

// A wrong value stops the start and names its variable alone.
func TestWorkerWrongValues(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"OPERATIONS_ADDR":         {"3015"},
		"DATABASE_URL":            {"", "://geheim"},
		"RABBITMQ_MANAGEMENT_URL": {"amqp://user:geheim@host"},
		"PHOTO_STORE":             {"/var/lib", "http://geheim@s3"},
		"PHOTO_MODERATION":        {"after"},
		"PHOTO_MEMORY":            {"512", "512MB", "100MiB", "-1MiB", "99999999999GiB", "9999999999GiB"},
		"CLAMD_URL":               {"clamd:3310", "http://geheim@clamd"},
	} {
		for _, value := range values {
			env := configtest.Environment()
			env["PHOTO_STORE"] = "file:///srv/photos"
			env[name] = value
			_, err := config.LoadWorker(func(name string) string { return env[name] })
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%s=%q: error %v, want one that names it alone", name, value, err)
			}
		}
	}
}

// Whatever the machine and the memory are, photos that wait for memory and those
// that have theirs fit into it together, and there is room for a picture.
func TestWorkerMemory(t *testing.T) {
	t.Parallel()
	const phone = 12<<20 + 30_000_000 + 40<<20 // the largest upload, of 12 megapixels
	for _, memory := range []string{"192MiB", "512MiB", "4GiB"} {
		env := configtest.Environment()
		env["PHOTO_MEMORY"] = memory
		cfg, err := config.LoadWorker(func(name string) string { return env[name] })
		if err != nil {
			t.Errorf("%s: %v", memory, err)
			continue
		}
		uploads := int64(cfg.Consumer().Workers) * 2 * report.MaxPhotoBytes
		if left := int64(cfg.Memory) - uploads - cfg.Budget(); left < 60<<20 || cfg.Budget() < phone {
			t.Errorf("%s: %d bytes for pictures, %d for uploads, %d for the rest", memory, cfg.Budget(), uploads, left)
		}
	}
}

// The manual has each variable of photo-worker alone with its default.
func TestWorkerManual(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "## photo-worker\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for f := range reflect.TypeFor[config.Worker]().Fields() {
		name, value := f.Tag.Get("env"), f.Tag.Get("envDefault")
		if !strings.HasPrefix(name, "PHOTO_") && name != "CLAMD_URL" {
			continue
		}
		if row := "| `" + name + "` | "; !strings.Contains(section, row) || value != "" && !strings.Contains(section, row+"`"+value+"` |") {
			t.Errorf("docs/configuration.md, photo-worker: no row of %s with the default %q", name, value)
		}
	}
}

// Compose, the chart and .env.example know each variable of photo-worker.
func TestWorkerPassed(t *testing.T) {
	t.Parallel()
	configtest.Passed(t, "photo-worker", reflect.TypeFor[config.Worker]())
}
