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

// An unreadable variable is blamed once, and no other is blamed for it: the checks
// see the default in its place.
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
