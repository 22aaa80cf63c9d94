package web_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/web"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/config"
)

var development = auth.Config{Mode: auth.Dev}

// bogor is the map that comes with the project.
const bogor = "../../../deploy/map/bogor.pmtiles"

func page(t *testing.T, cfg web.Config, sign auth.Config) http.Handler {
	t.Helper()
	h, err := web.New(cfg, sign)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return h
}

// get asks for path; header alternates names and values.
func get(t *testing.T, h http.Handler, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	return w.Result(), string(body)
}

// The page is what its policy allows: nothing inline, everything ours, and
// every file that it names is there.
func TestPage(t *testing.T) {
	t.Parallel()
	h := page(t, web.Config{}, development)
	resp, html := get(t, h, "/")
	policy := resp.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'; script-src 'self'; style-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy: %s", policy)
	}
	if regexp.MustCompile(`<script(?:[^>]*)>[^<]`).MatchString(html) || strings.Contains(html, "<style") || strings.Contains(html, "style=") {
		t.Errorf("something inline:\n%s", html)
	}
	named := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(html, -1)
	if len(named) < 4 {
		t.Fatalf("the page names %d files:\n%s", len(named), html)
	}
	for _, m := range named {
		if strings.HasPrefix(m[1], "/open-data/") { // of report-service
			continue
		}
		resp, body := get(t, h, m[1])
		if resp.StatusCode != http.StatusOK || body == "" {
			t.Errorf("%s: got %d with %d bytes", m[1], resp.StatusCode, len(body))
		}
		immutable := strings.Contains(resp.Header.Get("Cache-Control"), "immutable")
		if hashed := strings.HasPrefix(m[1], "/assets/"); immutable != hashed {
			t.Errorf("%s: Cache-Control is %q", m[1], resp.Header.Get("Cache-Control"))
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Content-Type") == "" {
			t.Errorf("%s: headers %v", m[1], resp.Header)
		}
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	h := page(t, web.Config{}, development)
	plain, want := get(t, h, "/")
	for accept, compressed := range map[string]bool{
		"gzip, deflate, br": true, "br;q=1.0, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "identity": false,
	} {
		resp, body := get(t, h, "/", "Accept-Encoding", accept)
		if got := resp.Header.Get("Content-Encoding") == "gzip"; got != compressed {
			t.Errorf("%q: compressed %t, want %t", accept, got, compressed)
			continue
		}
		if !compressed {
			continue
		}
		r, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatalf("%q: %v", accept, err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("%q: another page, error %v", accept, err)
		}
		if resp.Header.Get("ETag") == plain.Header.Get("ETag") || !slices.Contains(resp.Header.Values("Vary"), "Accept-Encoding") {
			t.Errorf("%q: a cache would mix the encodings up: %v", accept, resp.Header)
		}
	}
	if resp, _ := get(t, h, "/", "If-None-Match", plain.Header.Get("ETag")); resp.StatusCode != http.StatusNotModified {
		t.Errorf("the same page again: got %d", resp.StatusCode)
	}
}

func TestNoSuchFile(t *testing.T) {
	t.Parallel()
	h := page(t, web.Config{}, development)
	for _, path := range []string{"/nothing", "/assets/", "/assets/../web.go", "/app/package.json"} {
		if resp, _ := get(t, h, path); resp.StatusCode != http.StatusNotFound || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d as %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
		}
	}
}

// The page gets what the city configured, and its policy lets it reach all of that.
func TestConfig(t *testing.T) {
	t.Parallel()
	issuer := auth.Config{Mode: auth.JWT, Issuer: "https://id.city.test/realms/city"}
	city := web.Config{
		ClientID: "page", Scope: "openid", OIDCAudience: "city", OIDCResource: "urn:city", MapFile: bogor, MapAttribution: "© Somebody", MapCenter: &web.Center{106.8, -6.6, 14},
	}
	const ours = "img-src 'self' data: blob:; worker-src 'self'; manifest-src 'self'; connect-src 'self'"
	for _, tt := range []struct {
		name   string
		cfg    web.Config
		sign   auth.Config
		mode   string
		policy string
		atlas  string
	}{
		{"development", web.Config{ClientID: "page"}, development, "dev", ours + "; ", `{}`},
		{"nobody signs in", web.Config{MapBounds: &web.Bounds{1, 2, 3, 4}}, issuer, "none", ours + "; ", `{"bounds":[1,2,3,4]}`},
		{
			"all there is", city, issuer, "oidc", ours + " https://id.city.test; ",
			`{"tiles":"/map/city.pmtiles","attribution":"© Somebody","bounds":[106.777,-6.604,106.934,-6.444],"center":[106.8,-6.6,14]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if faults := tt.cfg.Validate(); len(faults) > 0 {
				t.Errorf("Validate: %v", faults)
			}
			resp, body := get(t, page(t, tt.cfg, tt.sign), "/config.json")
			var got struct {
				Auth struct{ Mode, Audience, Resource string }
				Map  json.RawMessage
			}
			if err := json.Unmarshal([]byte(body), &got); err != nil || got.Auth.Mode != tt.mode || string(got.Map) != tt.atlas {
				t.Errorf("config %s, error %v, want mode %s and map %s", body, err, tt.mode, tt.atlas)
			}
			if got.Auth.Mode == "oidc" && (got.Auth.Audience != tt.cfg.OIDCAudience || got.Auth.Resource != tt.cfg.OIDCResource) {
				t.Errorf("config %s, want the audience and the resource", body)
			}
			if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, tt.policy) {
				t.Errorf("policy %q, want %q", policy, tt.policy)
			}
		})
	}
}

// The page may reach the hosts that the provider says are its own, from when it has
// said so.
func TestPolicyHasTheProvidersEndpoints(t *testing.T) {
	t.Parallel()
	var endpoints []string
	cfg := web.Config{ClientID: "page", Endpoints: func() []string { return endpoints }}
	h := page(t, cfg, auth.Config{Mode: auth.JWT, Issuer: "https://id.city.test/realms/city"})
	for _, tt := range []struct {
		endpoints []string
		want      string
	}{
		{nil, "https://id.city.test"},
		{[]string{"https://id.city.test/authorize", "https://id.city.test/token"}, "https://id.city.test"},
		{[]string{"https://a.city.test/authorize", "https://token.city.test:8443/token"}, "https://a.city.test https://id.city.test https://token.city.test:8443"},
	} {
		endpoints = tt.endpoints
		resp, _ := get(t, h, "/")
		policy := resp.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "connect-src 'self' "+tt.want+"; ") || !strings.Contains(policy, "frame-src 'self' "+tt.want+"; ") {
			t.Errorf("endpoints %q: policy %q", tt.endpoints, policy)
		}
	}
}

// The page offers photos where report-service has a place for them.
func TestPhotosAreOffered(t *testing.T) {
	t.Parallel()
	for store, want := range map[string]bool{"": false, "file:///srv/photos": true} {
		_, body := get(t, page(t, web.Config{PhotoStore: store}, auth.Config{}), "/config.json")
		var got struct{ Photos bool }
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Photos != want || strings.Contains(body, "srv") {
			t.Errorf("PHOTO_STORE=%q: config %s, error %v", store, body, err)
		}
	}
}

// The page has comments where residents may write some.
func TestCommentsAreOffered(t *testing.T) {
	t.Parallel()
	for _, want := range []bool{false, true} {
		_, body := get(t, page(t, web.Config{Comments: config.Switch(want)}, auth.Config{}), "/config.json")
		var got struct{ Comments bool }
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Comments != want {
			t.Errorf("COMMENTS %v: config %s, error %v", want, body, err)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"no such file": "nowhere.pmtiles", "another kind": "web_test.go", "a folder": "app"} {
		faults := web.Config{MapFile: file, MapAttribution: "© Somebody"}.Validate()
		if len(faults) != 1 || faults[0].Variable != "PAGE_MAP_FILE" {
			t.Errorf("%s: got %v", name, faults)
		}
	}
	if faults := (web.Config{MapFile: bogor}).Validate(); len(faults) != 1 || faults[0].Variable != "PAGE_MAP_ATTRIBUTION" {
		t.Errorf("without whom to thank: got %v", faults)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1,2,3", "1,2,3,north", "3,2,1,4", "1,4,3,2", "-181,2,3,4", "1,2,3,91", "NaN,2,3,4"} {
		if err := new(web.Bounds).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("bounds %q are accepted", text)
		}
	}
	for _, text := range []string{"", "1,2", "181,2,3", "1,91,3", "1,2,23", "1,2,-1"} {
		if err := new(web.Center).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("center %q is accepted", text)
		}
	}
}

// The address of a screen returns the page to a client that asks for HTML; data at the
// same address is the API's. Any other address returns the page too, as not found.
func TestAddresses(t *testing.T) {
	t.Parallel()
	h := page(t, web.Config{}, development)
	for path, want := range map[string]int{
		"/": http.StatusOK, "/reports/1": http.StatusOK, "/mine": http.StatusOK, "/settings": http.StatusOK, "/ops/dead-letters/1": http.StatusOK,
		"/nowhere": http.StatusNotFound, "/assets/": http.StatusNotFound,
	} {
		resp, body := get(t, h, path, "Accept", "text/html,application/xhtml+xml")
		if resp.StatusCode != want || !strings.Contains(body, `<div id="app">`) || !strings.Contains(resp.Header.Get("Content-Security-Policy"), "script-src 'self'") {
			t.Errorf("%s: got %d, %v", path, resp.StatusCode, resp.Header)
		}
		if !strings.Contains(strings.Join(resp.Header.Values("Vary"), " "), "Accept") {
			t.Errorf("%s: a cache would mix the page and the API up: %v", path, resp.Header)
		}
	}
}

// The map comes in the parts that a browser asks for.
func TestMapFile(t *testing.T) {
	t.Parallel()
	h := page(t, web.Config{MapFile: bogor, MapAttribution: "© Somebody"}, development)
	resp, body := get(t, h, "/map/city.pmtiles", "Range", "bytes=0-6")
	if resp.StatusCode != http.StatusPartialContent || body != "PMTiles" || resp.Header.Get("ETag") == "" {
		t.Errorf("got %d %q, %v", resp.StatusCode, body, resp.Header)
	}
	if resp, _ := get(t, page(t, web.Config{}, development), "/map/city.pmtiles"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("without a map: got %d", resp.StatusCode)
	}
}

// The session is renewed in a frame, where the identity provider answers: that
// one file may be in a frame of the page, and nothing else in any.
func TestRenewalInAFrame(t *testing.T) {
	t.Parallel()
	const frames = "frame-ancestors 'self'"
	h := page(t, web.Config{ClientID: "page"}, auth.Config{Mode: auth.JWT, Issuer: "https://id.example.org/city"})
	resp, html := get(t, h, "/renew.html", "Accept", "text/html")
	if policy := resp.Header.Get("Content-Security-Policy"); policy != "default-src 'none'; script-src 'self'; "+frames || !strings.Contains(html, `src="/renew.js"`) {
		t.Errorf("the file for the frame has the policy %s:\n%s", policy, html)
	}
	for _, path := range []string{"/", "/mine", "/reports/1"} {
		resp, _ := get(t, h, path, "Accept", "text/html")
		policy := resp.Header.Get("Content-Security-Policy")
		if strings.Contains(policy, frames) || !strings.Contains(policy, "frame-src 'self' https://id.example.org;") {
			t.Errorf("%s has the policy %s", path, policy)
		}
	}
	resp, _ = get(t, page(t, web.Config{}, development), "/")
	if policy := resp.Header.Get("Content-Security-Policy"); strings.Contains(policy, "frame-src") {
		t.Errorf("without a provider the policy is %s", policy)
	}
}
