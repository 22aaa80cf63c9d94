package web_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/web"
	"github.com/cityconnect/cityconnect/platform/auth"
)

var development = auth.Config{Mode: auth.Dev}

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
		if resp.Header.Get("ETag") == plain.Header.Get("ETag") || resp.Header.Get("Vary") != "Accept-Encoding" {
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

// What the city configured is what the page is told, and all that its policy
// lets it reach.
func TestConfig(t *testing.T) {
	t.Parallel()
	issuer := auth.Config{Mode: auth.JWT, Issuer: "https://id.city.test/realms/city"}
	tiles := web.Config{
		ClientID: "page", Scope: "openid", TilesURL: "https://{s}.tiles.test/{z}/{x}/{y}.png", TilesAttribution: "© Tiles",
	}
	for _, tt := range []struct {
		name   string
		cfg    web.Config
		sign   auth.Config
		mode   string
		policy string
	}{
		{"development", web.Config{ClientID: "page"}, development, "dev", "img-src 'self' data:; connect-src 'self'; "},
		{"nobody signs in", web.Config{}, issuer, "none", "img-src 'self' data:; connect-src 'self'; "},
		{"all there is", tiles, issuer, "oidc", "img-src 'self' data: https://*.tiles.test; connect-src 'self' https://id.city.test; "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if faults := tt.cfg.Validate(); len(faults) > 0 {
				t.Errorf("Validate: %v", faults)
			}
			resp, body := get(t, page(t, tt.cfg, tt.sign), "/config.json")
			var got struct{ Auth struct{ Mode string } }
			if err := json.Unmarshal([]byte(body), &got); err != nil || got.Auth.Mode != tt.mode {
				t.Errorf("config %s, error %v, want mode %s", body, err, tt.mode)
			}
			if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, tt.policy) {
				t.Errorf("policy %q, want %q", policy, tt.policy)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"tiles", "ftp://tiles.test/{z}", "https://tiles.test/"} {
		faults := web.Config{TilesURL: url, TilesAttribution: "© Tiles"}.Validate()
		if len(faults) != 1 || faults[0].Variable != "PAGE_TILES_URL" {
			t.Errorf("%q: got %v", url, faults)
		}
	}
	if faults := (web.Config{TilesURL: "https://tiles.test/{z}"}).Validate(); len(faults) != 1 {
		t.Errorf("without whom to thank: got %v", faults)
	}
}
