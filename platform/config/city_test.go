package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/config"
)

type city struct {
	Name      config.CityName  `env:"CITY_NAME" envDefault:"CityConnect" example:"Kota Bogor"`
	Languages config.Languages `env:"CITY_LANGUAGES" envDefault:"en,id" example:"id,en"`
	Links     config.CityLinks `env:"CITY_LINKS" example:"privacy=https://city.example.org/privacy,emergency=112"`
}

func loadCity(name, value string) (c city, err error) {
	err = config.Load(&c, func(variable string) string {
		if variable == name {
			return value
		}
		return ""
	}, nil)
	return c, err
}

func TestCity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		variable, value string
		want            city
	}{
		{"", "", city{Name: "CityConnect", Languages: config.Languages{"en", "id"}}},
		{"CITY_NAME", "Kota Bogor", city{Name: "Kota Bogor", Languages: config.Languages{"en", "id"}}},
		{"CITY_LANGUAGES", "id, jv ,en", city{Name: "CityConnect", Languages: config.Languages{"id", "jv", "en"}}},
		{"CITY_LINKS", "privacy=https://a.test/p?x=1%2C2, imprint=https://a.test/i ,accessibility=https://a.test/a,terms=https://a.test/t,contact=https://a.test/c,emergency=+62 251 112", city{
			Name: "CityConnect", Languages: config.Languages{"en", "id"},
			Links: config.CityLinks{Privacy: "https://a.test/p?x=1%2C2", Imprint: "https://a.test/i", Accessibility: "https://a.test/a", Terms: "https://a.test/t", Contact: "https://a.test/c", Emergency: "+62 251 112"},
		}},
	} {
		if got, err := loadCity(tt.variable, tt.value); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s=%s: got %+v, error %v; want %+v", tt.variable, tt.value, got, err, tt.want)
		}
	}
}

// A wrong value stops the start, which names the variable and what must hold.
func TestWrongCity(t *testing.T) {
	t.Parallel()
	for variable, wrong := range map[string]struct {
		must   string
		values []string
	}{
		"CITY_NAME":      {"up to 60 characters without < and >, such as Kota Bogor", []string{strings.Repeat("x", 61), "Bogor <city@example.org>"}},
		"CITY_LANGUAGES": {"up to 10 codes of languages (ISO 639), each once, joined by commas, such as id,en", []string{"indonesian", "id,id", "id,", "ID", "a1", "aa,ab,ac,ad,ae,af,ag,ah,ai,aj,ak"}},
		"CITY_LINKS": {"emergency with a telephone number, joined by commas, each at most once, such as privacy=", []string{
			"https://city.example.org/privacy", "privacy=", "privacy=city.example.org/privacy", "privacy=javascript:alert(1)", "privacy=https://user@city.example.org",
			"help=https://city.example.org", "contact=mailto:a@city.example.org", "emergency=call", "emergency=https://city.example.org", "emergency=112,emergency=113", "emergency=112,",
		}},
	} {
		for _, value := range wrong.values {
			_, err := loadCity(variable, value)
			if err == nil || !strings.HasPrefix(err.Error(), variable+": must be ") || !strings.Contains(err.Error(), wrong.must) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s=%s: error %v, want one that says %q", variable, value, err, wrong.must)
			}
		}
	}
}
