package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/config"
)

type inner struct {
	Secret string `env:"T_SECRET,required" example:"$(openssl rand -hex 32)"`
}

type settings struct {
	Addr  string        `env:"T_ADDR" envDefault:"127.0.0.1:3002"`
	Count int           `env:"T_COUNT" envDefault:"10"`
	Wait  time.Duration `env:"T_WAIT" envDefault:"5s"`
	Auth  inner
	Extra string `env:"-"`
}

func TestLoad(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bom := filepath.Join(t.TempDir(), "of Windows")
	if err := os.WriteFile(bom, []byte("\ufefffrom Windows\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		env  map[string]string
		want settings
		errs []string // each is in the error; none means success
	}{
		{"defaults", map[string]string{"T_SECRET": "s", "T_COUNT": ""},
			settings{"127.0.0.1:3002", 10, 5 * time.Second, inner{"s"}, ""}, nil},
		{"values and a file", map[string]string{"T_SECRET_FILE": file, "T_COUNT": "3", "T_WAIT": "1m"},
			settings{"127.0.0.1:3002", 3, time.Minute, inner{"from a file"}, ""}, nil},
		{"decorated", map[string]string{"T_SECRET": "\ufeff s\u200b\r\n", "T_ADDR": "\u00a0127.0.0.1:1\n", "T_COUNT": " 3 ", "T_WAIT": "1m\t"},
			settings{"127.0.0.1:1", 3, time.Minute, inner{"s"}, ""}, nil},
		{"a decorated file", map[string]string{"T_SECRET_FILE": " " + bom + "\n"},
			settings{"127.0.0.1:3002", 10, 5 * time.Second, inner{"from Windows"}, ""}, nil},
		{"nothing but decoration", map[string]string{"T_SECRET": " \n"}, settings{}, []string{"T_SECRET: must be set to a value"}},
		{"two lines", map[string]string{"T_SECRET": "a\nb"}, settings{}, []string{"T_SECRET: must be one line"}},
		{"quoted", map[string]string{"T_SECRET": `"Geheim"`, "T_ADDR": "'127.0.0.1:1'"}, settings{},
			[]string{"T_SECRET: must be without quotes", "T_ADDR: must be without quotes"}},
		{"in UTF-16", map[string]string{"T_SECRET": "\xff\xfea\x00"}, settings{}, []string{"T_SECRET: must be text in UTF-8"}},
		{"every fault at once", map[string]string{"T_COUNT": "three", "T_WAIT": "soon"}, settings{},
			[]string{"T_COUNT: must be an integer, such as 10", "T_WAIT: must be a duration with its unit, such as 5s",
				"T_SECRET: must be set to a value, such as $(openssl rand -hex 32)"}},
		{"both forms", map[string]string{"T_SECRET": "s", "T_SECRET_FILE": file}, settings{},
			[]string{"T_SECRET: must be empty where T_SECRET_FILE is set"}},
		{"no such file", map[string]string{"T_SECRET_FILE": "/does/not/exist"}, settings{},
			[]string{"T_SECRET_FILE: must be a file that can be read: open /does/not/exist"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got settings
			err := config.Load(&got, func(name string) string { return tt.env[name] }, nil)
			if (err != nil) != (tt.errs != nil) {
				t.Fatalf("Load: error %v, want one: %t", err, tt.errs != nil)
			}
			if err == nil && got != tt.want {
				t.Errorf("Load: got %+v, want %+v", got, tt.want)
			}
			for _, want := range tt.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Load: error %q does not tell %q", err, want)
				}
			}
		})
	}
}

// A password with a character that means something in a URL would become a part of the
// host, and be logged. It is refused, and nothing of it shown, in every URL.
func TestLoadRefusesUnencodedPasswords(t *testing.T) {
	t.Parallel()
	type urls struct {
		Service config.Service
		Proxy   string `env:"T_PROXY_URL"`
		Store   string `env:"PHOTO_STORE"`
		Key     string `env:"T_PEM" lines:"true"`
	}
	const password = "Geheim@Teil#2"
	env := map[string]string{
		"DATABASE_URL": "postgres://u:" + password + "@db.example.org/x", "RABBITMQ_URL": "amqp://u:" + password + "@mq.example.org/",
		"T_PROXY_URL": "http://u:" + password + "@proxy.example.org", "PHOTO_STORE": "s3://u:" + password + "@photos",
		"RECIPIENT_PEM": "k1:AAAA", "T_PEM": "-----BEGIN\nkey\n-----END\n",
	}
	var got urls
	err := config.Load(&got, func(name string) string { return env[name] }, func() []config.Fault { return got.Service.Validate() })
	if err == nil || strings.Contains(err.Error(), "Geheim") || strings.Contains(err.Error(), "Teil") || strings.Contains(err.Error(), "T_PEM") {
		t.Fatalf("Load: %v, want an error without the password", err)
	}
	for _, variable := range []string{"DATABASE_URL", "RABBITMQ_URL", "T_PROXY_URL", "PHOTO_STORE"} {
		if !strings.Contains(err.Error(), variable+": must be a URL; it must have @ in the password encoded as %40") {
			t.Errorf("Load: %v, want a fault of %s", err, variable)
		}
	}
}

// An unreadable value is reported once, and by nothing else: the later checks see
// the default in its place.
func TestLoadBlamesOnce(t *testing.T) {
	t.Parallel()
	var got settings
	env := map[string]string{"T_SECRET_FILE": "/does/not/exist", "T_COUNT": "many"}
	err := config.Load(&got, func(name string) string { return env[name] }, func() []config.Fault {
		var faults config.Faults
		faults.Check(got.Count == 10, "T_COUNT", "the default")
		faults.Check(false, "T_ADDR", "something else")
		faults.Check(false, "T_SECRET", "a secret")
		return faults
	})
	wrong, ok := errors.AsType[*config.Error](err)
	if !ok {
		t.Fatalf("Load: %v, want an *Error", err)
	}
	var named []string
	for _, fault := range wrong.Faults {
		named = append(named, fault.Variable)
	}
	if want := []string{"T_ADDR", "T_COUNT", "T_SECRET_FILE"}; !slices.Equal(named, want) {
		t.Errorf("blamed are %q, want %q:\n%v", named, want, err)
	}
}
