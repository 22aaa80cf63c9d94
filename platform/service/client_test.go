package service_test

import (
	"net/http/httptest"
	"testing"

	"github.com/cityconnect/cityconnect/platform/service"
)

// The gateway says whose request it is; without a gateway it is the connection's.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.RemoteAddr = "198.51.100.7:4711"
	for _, tt := range []struct{ forwarded, want string }{
		{"", "198.51.100.7"}, {"192.0.2.1", "192.0.2.1"}, {"192.0.2.1, 10.0.0.1", "192.0.2.1"}, {"2001:db8::5", "2001:db8::5"},
	} {
		r.Header.Set("X-Forwarded-For", tt.forwarded)
		if got := service.ClientAddress(r); got != tt.want {
			t.Errorf("X-Forwarded-For %q: %s, want %s", tt.forwarded, got, tt.want)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8::5": "2001:db8::/64",
		"2001:db8:0:0:7::8%eth0": "2001:db8::/64", "unknown": "invalid Prefix", "": "invalid Prefix",
	} {
		if got := service.Network(address).String(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestPreferredLanguage(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "en", "fr": "en", "id-ID,id;q=0.9,en;q=0.8": "id", "en-GB,id": "en", "fr, in-ID;q=0.9": "id", "ID": "id",
	} {
		if got := service.PreferredLanguage(header, "en", "id"); got != want {
			t.Errorf("%s: %s, want %s", header, got, want)
		}
	}
}
