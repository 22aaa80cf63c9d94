package webhook_test

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	city := []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd12::/48")}
	for _, tt := range []struct {
		rules webhook.Rules
		url   string
		want  string // in the error; empty if the address is accepted
	}{
		{url: "https://hooks.example.org/cityconnect?key=1"},
		{url: "https://hooks.example.org:8443/"},
		{url: "https://hooks.example.org:443"},
		{url: "https://HOOKS.Example.org."},
		{url: "https://xn--bcher-kva.example"},
		{url: "", want: "such as https://"},
		{url: "hooks.example.org", want: "such as https://"},
		{url: "https:hooks.example.org", want: "such as https://"},
		{url: "https://", want: "such as https://"},
		{url: "https://hooks.example.org/%zz", want: "such as https://"},
		{url: "https://" + strings.Repeat("a", 2048) + ".example", want: "at most 2048"},
		{url: "http://hooks.example.org", want: "begins with https://"},
		{url: "ftp://hooks.example.org", want: "begins with https://"},
		{rules: webhook.Rules{AllowHTTP: true}, url: "http://hooks.example.org"},
		{rules: webhook.Rules{AllowHTTP: true}, url: "http://hooks.example.org:8080"},
		{rules: webhook.Rules{AllowHTTP: true}, url: "ftp://hooks.example.org", want: "begins with https:// or http://"},
		{url: "https://user:password@hooks.example.org", want: "a user"},
		{url: "https://user@hooks.example.org", want: "a user"},
		{url: "https://hooks.example.org/#part", want: "a fragment"},
		{url: "https://hooks.example.org/#", want: "a fragment"},
		{url: "https://hooks.example.org:5432", want: "the port 443 or 8443"},
		{url: "https://hooks.example.org:0", want: "a port between"},
		{url: "https://hooks.example.org:65536", want: "a port between"},
		{url: "https://8.8.8.8", want: "instead of an IP address"},
		{url: "https://169.254.169.254/latest", want: "instead of an IP address"},
		{url: "https://[::1]", want: "instead of an IP address"},
		{url: "https://[::ffff:10.0.0.1]", want: "instead of an IP address"},
		{url: "https://[fe80::1%25eth0]", want: "instead of an IP address"},
		{url: "https://2130706433", want: "instead of a number"},
		{url: "https://127.1", want: "instead of a number"},
		{url: "https://0x7f.1", want: "instead of a number"},
		{url: "https://hooks.0x7f", want: "instead of a number"},
		{url: "https://0177.0.0.08", want: "instead of a number"},
		{url: "https://localhost", want: "the full name"},
		{url: "https://localhost.", want: "the full name"},
		{url: "https://postgres", want: "the full name"},
		{url: "https://hooks..example.org", want: "in ASCII letters"},
		{url: "https://.example.org", want: "in ASCII letters"},
		{url: "https://bücher.example", want: "in ASCII letters"},
		{url: "https://hooks.example。org", want: "in ASCII letters"},
		{rules: webhook.Rules{AllowNetworks: city}, url: "https://10.20.3.4:9000/hook"},
		{rules: webhook.Rules{AllowNetworks: city}, url: "https://[fd12::5]:9000/hook"},
		{rules: webhook.Rules{AllowNetworks: city}, url: "https://[::ffff:10.20.3.4]"},
		{rules: webhook.Rules{AllowNetworks: city}, url: "https://work-orders:9000"},
		{rules: webhook.Rules{AllowNetworks: city}, url: "https://10.21.3.4", want: "instead of an IP address"},
		{rules: webhook.Rules{AllowNetworks: city}, url: "http://10.20.3.4", want: "begins with https://"},
		{rules: webhook.Rules{AllowNetworks: city}, url: "https://127.1", want: "instead of a number"},
	} {
		err := tt.rules.CheckURL(tt.url)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%.80s: %v, want it accepted", tt.url, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%.80s: error %v, want %q in it", tt.url, err, tt.want)
		case err != nil && strings.Contains(err.Error(), "password@"): // an address may hold secrets
			t.Errorf("the error shows the address: %v", err)
		}
	}
}

// Characters that were copied along with an address are removed, and an
// internationalised name becomes ASCII. Neither gets around a rule.
func TestCleanURL(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		" https://hooks.example.org/a ":        "https://hooks.example.org/a",
		"https://bücher.example:8443/ü?ü=ü":    "https://xn--bcher-kva.example:8443/ü?ü=ü",
		"https://BÜCHER.example":               "https://xn--bcher-kva.example",
		"https://hooks.example。org/":           "https://hooks.example.org/",
		"https://ｈooks.example.org":            "https://hooks.example.org",
		"https://127。0。0。1/":                   "https://127.0.0.1/",
		"https://a_b.bücher.example":           "https://a_b.bücher.example",
		"https://user:geheim@bücher.example":   "https://user:geheim@xn--bcher-kva.example",
		"https://hooks.example.org/%zz":        "https://hooks.example.org/%zz",
		"https://hooks.example.org/?key=b%20%": "https://hooks.example.org/?key=b%20%",
	} {
		if got := webhook.CleanURL(given); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
	for _, address := range []string{"https://127。0。0。1/", "https://１２７.0.0.1/", "https://localhosｔ/", "https://①②⑦.0.0.1"} {
		if err := (webhook.Rules{}).CheckURL(webhook.CleanURL(address)); err == nil {
			t.Errorf("%s is accepted", address)
		}
	}
}

func TestRulesCheck(t *testing.T) {
	t.Parallel()
	good := webhook.Registration{URL: "https://hooks.example.org", Order: webhook.OrderReport, InFlight: 2}
	for _, tt := range []struct {
		name  string
		with  func(r *webhook.Registration)
		field string // that is blamed; empty if all is well
	}{
		{"a plain one", func(*webhook.Registration) {}, ""},
		{"all of it", func(r *webhook.Registration) {
			r.Description, r.Order, r.InFlight = "Work orders", webhook.OrderNone, 16
			r.Filter = webhook.Filter{Types: []string{"report.created"}, Categories: []int32{1, 2}, Area: &webhook.Area{107.5, -7, 107.8, -6.8}}
		}, ""},
		{"an address", func(r *webhook.Registration) { r.URL = "https://localhost" }, "/url"},
		{"a long description", func(r *webhook.Registration) { r.Description = strings.Repeat("ü", 201) }, "/description"},
		{"an event that is none", func(r *webhook.Registration) { r.Filter.Types = []string{"report.created", "report.burnt"} }, "/event_types/1"},
		{"the test event", func(r *webhook.Registration) { r.Filter.Types = []string{webhook.TestType} }, "/event_types/0"},
		{"no category", func(r *webhook.Registration) { r.Filter.Categories = []int32{1, 0} }, "/category_ids/1"},
		{"the east before the west", func(r *webhook.Registration) { r.Filter.Area = &webhook.Area{10, 0, 5, 1} }, "/area"},
		{"beyond the pole", func(r *webhook.Registration) { r.Filter.Area = &webhook.Area{0, 0, 5, 91} }, "/area"},
		{"an order", func(r *webhook.Registration) { r.Order = "random" }, "/order"},
		{"too many at once", func(r *webhook.Registration) { r.InFlight = 17 }, "/in_flight"},
	} {
		reg := good
		tt.with(&reg)
		err := webhook.Rules{}.Check(reg, "")
		if tt.field == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if known, ok := err.(*fault.Error); !ok || known.Kind != fault.Invalid || known.Field != tt.field { //nolint:errorlint // as it is returned
			t.Errorf("%s: error %v, want one that blames %s", tt.name, err, tt.field)
		}
	}
	// An endpoint that was registered under other rules may be changed otherwise.
	old := webhook.Registration{URL: "http://work-orders/hook", Order: webhook.OrderReport, InFlight: 1}
	if err := (webhook.Rules{}).Check(old, old.URL); err != nil {
		t.Errorf("a known address: %v", err)
	}
}

func TestSecretIsSealed(t *testing.T) {
	t.Parallel()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	e, secret := webhook.NewEndpoint(webhook.Registration{URL: "https://hooks.example.org"}, keys)
	key, found := strings.CutPrefix(secret, "whsec_")
	if raw, err := base64.StdEncoding.DecodeString(key); !found || err != nil || len(raw) != 32 {
		t.Errorf("secret %q (error %v), want whsec_ and the base64 of 32 bytes", secret, err)
	}
	if strings.Contains(e.Secrets.Sealed, key) {
		t.Error("the row holds the secret in the open")
	}
	if opened, err := keys.Open(e.ID, e.Secrets.Sealed); err != nil || opened != secret {
		t.Errorf("opens as %q (error %v), want the secret", opened, err)
	}
	if _, err := keys.Open(uuid.New(), e.Secrets.Sealed); err == nil {
		t.Error("the secret opens for another endpoint")
	}
	if _, other := webhook.NewEndpoint(webhook.Registration{}, keys); other == secret {
		t.Error("two endpoints have one secret")
	}
}
