package push_test

import (
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/platform/fault"
)

func goodConfig(t *testing.T, hosts ...string) push.Config {
	t.Helper()
	private, public := push.NewKey()
	cfg := push.Config{VAPIDKey: private, Contact: "mailto:operations@city.example.org", AllowHosts: hosts}
	if faults := cfg.Validate(); len(faults) > 0 || cfg.PublicKey() != public {
		t.Fatalf("faults %v, public key %q, want none and %q", faults, cfg.PublicKey(), public)
	}
	return cfg
}

// Push services reach the operators by a contact that others can resolve; Apple's
// refuses what cannot be.
func TestContact(t *testing.T) {
	t.Parallel()
	for contact, good := range map[string]bool{
		"mailto:operations@city.example.org": true, "https://city.example.org/contact": true, "https://kota.go.id": true,
		"": false, "operations@city.example.org": false, "mailto:operations@localhost": false, "mailto:ops@city.local": false,
		"mailto:ops@city.invalid": false, "mailto:ops@city.TEST": false, "mailto:Ops <ops@city.example.org>": false,
		"http://city.example.org": false, "https://localhost": false, "https://localhost:8443": false, "https://gateway": false,
		"https://10.0.0.1": false, "https://[fd12::1]": false, "https://city.internal": false, "https://": false, "https://user:geheim@city.example.org": false,
	} {
		private, _ := push.NewKey()
		cfg := push.Config{VAPIDKey: private, Contact: contact, AllowHosts: []string{"fcm.googleapis.com"}}
		faults := cfg.Validate()
		if (len(faults) == 0) != good {
			t.Errorf("contact %q: faults %v", contact, faults)
		}
	}
}

// The address that a browser gives as its push service decides where this city's
// servers connect to: nowhere but to the services that are named.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	cfg := goodConfig(t, "*.push.services.mozilla.com", " FCM.googleapis.com", "jmt17.google.com", "*.push.apple.com", "*.notify.windows.com", "127.0.0.1:8443")
	for address, host := range map[string]string{
		"https://updates.push.services.mozilla.com/wpush/v2/gAAA": "updates.push.services.mozilla.com",
		"https://fcm.googleapis.com/fcm/send/abc":                 "fcm.googleapis.com",
		"https://FCM.googleapis.com:443/fcm/send/abc":             "fcm.googleapis.com",
		"https://web.push.apple.com/QH":                           "web.push.apple.com",
		"https://wns2-sg2p.notify.windows.com/w/?token=a%2fb":     "wns2-sg2p.notify.windows.com",
		"https://jmt17.google.com/fcm/send/abc:APA91b":            "jmt17.google.com",
		"https://127.0.0.1:8443/":                                 "127.0.0.1:8443",
	} {
		if got, err := cfg.CheckEndpoint(address); err != nil || got != host {
			t.Errorf("%s: host %q, %v; want %q", address, got, err, host)
		}
	}
	for _, address := range []string{
		"", "fcm.googleapis.com", "http://fcm.googleapis.com/fcm/send/abc", "//fcm.googleapis.com/", "ftp://fcm.googleapis.com/",
		"https://fcm.googleapis.com:8443/", "https://fcm.googleapis.com:80/", "https://fcm.googleapis.com.evil.example.org/", "https://evil.example.org/fcm.googleapis.com",
		"https://evilpush.apple.com/", "https://push.apple.com/", "https://.push.apple.com/", "https://evil.example.org#.push.apple.com", "https://evil.example.org?.push.apple.com",
		"https://user@fcm.googleapis.com/", "https://fcm.googleapis.com@evil.example.org/", "https://fcm.googleapis.com./",
		"https://127.0.0.1/", "https://127.0.0.1:9/", "https://[::1]/", "https://169.254.169.254/latest/meta-data", "https://2130706433/", "https://localhost/",
		"https://fcm.googleapis.com\\@evil.example.org/", "https://fcm.googleapis.com/#x", "https://fcm.googleapis.com/" + strings.Repeat("x", 1024),
	} {
		host, err := cfg.CheckEndpoint(address)
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: host %q, %v; want a refusal", address, host, err)
		}
	}
}

func TestLabel(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0":                                                                  "Firefox, Linux",
		"Mozilla/5.0 (Android 16; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0":                                                                    "Firefox, Android",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36":                         "Chrome, Android",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0":           "Edge, Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1": "Safari, iPhone",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15":                   "Safari, macOS",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36":     "Samsung Internet, Android",
		"curl/8.0": "Browser", "": "Browser",
	} {
		if got := push.Label(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
