package web_test

import (
	"cmp"
	"html"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/web"
	"github.com/cityconnect/cityconnect/platform/service"
)

// The type of each problem is an address at which it is explained. docs/problems.md has
// all of both services and of the gateway: tests there see to it.
func TestProblemsAreExplainedAtTheirTypes(t *testing.T) {
	t.Parallel()
	h := page(t, web.Config{}, development)
	manual, err := os.ReadFile("../../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^## ([a-z-]+)$`).FindAllStringSubmatch(string(manual), -1)
	if len(names) < 40 {
		t.Fatalf("docs/problems.md has %d problems", len(names))
	}
	for _, name := range names {
		address, anchor, _ := strings.Cut(service.ProblemType{Name: name[1]}.URI(), "#")
		resp, body := get(t, h, address, "Accept", "text/html")
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, `<h2 id="`+anchor+`">`) {
			t.Errorf("%s: status %d without an explanation", service.ProblemType{Name: name[1]}.URI(), resp.StatusCode)
		}
	}
}

// The references of the API are pages like others: with the page's policy, and asked
// for again as long as they are the same.
func TestReferences(t *testing.T) {
	t.Parallel()
	h := page(t, web.Config{}, development)
	for path, want := range map[string][2]string{
		"/docs":                       {"text/html; charset=utf-8", "<h1"},
		"/docs/":                      {"text/html; charset=utf-8", `href="/docs/problems"`},
		"/docs/report-service":        {"text/html; charset=utf-8", `id="post-reports"`},
		"/docs/notification-service":  {"text/html; charset=utf-8", `id="get-notifications"`},
		"/docs/messages":              {"text/html; charset=utf-8", "queue.status_updates"},
		"/docs/style.css":             {"text/css; charset=utf-8", "color-scheme"},
		"/docs/asyncapi.yaml":         {"application/yaml", "asyncapi: 3"},
		"/docs/openapi/open311.yaml":  {"application/yaml", "openapi: 3"},
		"/docs/schemas/manifest.json": {"application/json", "$schema"},
	} {
		resp, body := get(t, h, path, "Accept", "text/html")
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != want[0] || !strings.Contains(body, want[1]) {
			t.Errorf("%s: status %d, type %q, want %q", path, resp.StatusCode, resp.Header.Get("Content-Type"), want)
		}
		if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: policy %q", path, policy)
		}
		if resp, _ := get(t, h, path, "If-None-Match", resp.Header.Get("ETag")); resp.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: status %d", path, resp.StatusCode)
		}
	}
}

// Each link of the pages leads to something that is there, and no page has what its
// policy forbids.
func TestLinksOfReferences(t *testing.T) {
	t.Parallel()
	h := page(t, web.Config{}, development)
	served := []string{"/", "/icon.svg", "/openapi.json", "/report-service/openapi.json"}
	pages := make(map[string]string)
	read := func(address string) string {
		if _, ok := pages[address]; !ok {
			resp, body := get(t, h, address)
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: status %d", address, resp.StatusCode)
			}
			pages[address] = body
		}
		return pages[address]
	}
	href := regexp.MustCompile(` href="([^"]+)"`)
	for _, address := range []string{"/docs/", "/docs/problems", "/docs/report-service", "/docs/notification-service", "/docs/messages"} {
		body := read(address)
		if strings.Contains(body, "<script") || strings.Contains(body, "style=") || strings.Contains(body, "<ol") {
			t.Errorf("%s has a script, a style or a numbered list", address)
		}
		for _, link := range href.FindAllStringSubmatch(body, -1) {
			to, anchor, _ := strings.Cut(html.UnescapeString(link[1]), "#")
			if strings.HasPrefix(to, "https://") || slices.Contains(served, to) {
				continue
			}
			if !strings.Contains(read(cmp.Or(to, address)), ` id="`+anchor+`"`) && anchor != "" {
				t.Errorf("%s: %s leads nowhere", address, link[1])
			}
		}
	}
}
