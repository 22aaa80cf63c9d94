package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/appearance"
	"github.com/cityconnect/cityconnect/notification-service/internal/web"
	"github.com/cityconnect/cityconnect/platform/config"
)

const drawing = `<?xml version="1.0"?>
<!-- the arms of the city -->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><style>path{fill:#060}</style><script>alert(1)</script><path d="M0 0h8v8z"/></svg>
`

func pixels(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(t *testing.T, body []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "logo")
	if err := os.WriteFile(name, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The page is called as the city is, also to who runs no script and to phones that
// install it, and knows its languages, logo and links.
func TestCityIsNamed(t *testing.T) {
	t.Parallel()
	cfg := web.Config{CityName: `Kota "Bogor" & sekitarnya`, Languages: config.Languages{"id", "en"}, CityLogo: file(t, []byte(drawing)),
		CityLinks: config.CityLinks{Privacy: "https://city.test/privacy", Emergency: "112"}}
	h := page(t, cfg, development)
	_, html := get(t, h, "/")
	if want := `<title>Kota &#34;Bogor&#34; &amp; sekitarnya</title>`; !strings.Contains(html, want) || strings.Contains(html, "CityConnect") {
		t.Errorf("the page is not called as the city: %s", html)
	}
	_, manifest := get(t, h, "/manifest.webmanifest")
	var named struct {
		Name  string `json:"name"`
		Short string `json:"short_name"`
		Start string `json:"start_url"`
	}
	if err := json.Unmarshal([]byte(manifest), &named); err != nil || named.Name != string(cfg.CityName) || named.Short != named.Name || named.Start != "/" {
		t.Errorf("manifest %s (error %v)", manifest, err)
	}
	_, settings := get(t, h, "/config.json")
	var got struct {
		City struct {
			Name      string            `json:"name"`
			Languages []string          `json:"languages"`
			Logo      string            `json:"logo"`
			Links     map[string]string `json:"links"`
		} `json:"city"`
	}
	if err := json.Unmarshal([]byte(settings), &got); err != nil {
		t.Fatal(err)
	}
	if c := got.City; c.Name != string(cfg.CityName) || strings.Join(c.Languages, " ") != "id en" || c.Logo != "/city/logo" || len(c.Links) != 2 || c.Links["emergency"] != "112" {
		t.Errorf("the page gets %+v", c)
	}
	if _, settings := get(t, page(t, web.Config{}, development), "/config.json"); strings.Contains(settings, "logo") || !strings.Contains(settings, `"links":{}`) {
		t.Errorf("a city without a logo: %s", settings)
	}
}

// A logo is served as what it is, and a drawing runs nothing.
func TestLogo(t *testing.T) {
	t.Parallel()
	for contentType, body := range map[string][]byte{"image/svg+xml": []byte(drawing), "image/png": pixels(t, 64, 64)} {
		resp, got := get(t, page(t, web.Config{CityLogo: file(t, body)}, development), "/city/logo")
		policy := resp.Header.Get("Content-Security-Policy")
		if resp.StatusCode != http.StatusOK || got != string(body) || resp.Header.Get("Content-Type") != contentType || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d with %v", contentType, resp.StatusCode, resp.Header)
		}
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "sandbox;") || strings.Contains(policy, "allow-") || strings.Contains(policy, "script-src") {
			t.Errorf("%s: policy %q, want one that runs nothing", contentType, policy)
		}
	}
	if resp, _ := get(t, page(t, web.Config{}, development), "/city/logo"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("without a logo: status %d, want 404", resp.StatusCode)
	}
}

// A file that is not a picture stops the start, whatever its name.
func TestWrongLogo(t *testing.T) {
	t.Parallel()
	whole := pixels(t, 64, 64)
	for name, body := range map[string][]byte{
		"empty": nil, "text": []byte("CityConnect"), "page": []byte("<html><body><svg xmlns='http://www.w3.org/2000/svg'/></body></html>"),
		"cut SVG": []byte(drawing[:len(drawing)-8]), "SVG of no namespace": []byte("<svg/>"), "two": []byte(drawing + drawing[21:]),
		"entities":   []byte(`<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg"><text>&a;</text></svg>`),
		"text after": []byte(drawing + "x"), "cut PNG": whole[:len(whole)-12], "large PNG": pixels(t, 4097, 1),
		"JPEG": []byte("\xff\xd8\xff\xe0"), "64 KiB": []byte(strings.Replace(drawing, "the arms", strings.Repeat("x", 64<<10), 1)),
	} {
		faults := web.Config{CityLogo: file(t, body)}.Validate()
		if len(faults) != 1 || faults[0].Variable != "CITY_LOGO" || !strings.Contains(faults[0].Must, "SVG or PNG of at most 64 KiB") {
			t.Errorf("%s: faults %v, want one of CITY_LOGO", name, faults)
		}
	}
	if faults := (web.Config{CityLogo: filepath.Join(t.TempDir(), "nowhere")}).Validate(); len(faults) != 1 {
		t.Errorf("a file that is not there: faults %v", faults)
	}
}

// A page that is opened after the city's colour was changed has the new one, in both themes.
func TestColoursOfTheCity(t *testing.T) {
	t.Parallel()
	look := appearance.Appearance{}
	h := page(t, web.Config{Appearance: func(context.Context) appearance.Appearance { return look }}, development)
	if _, settings := get(t, h, "/config.json"); strings.Contains(settings, "colours") {
		t.Errorf("a city without a colour has %s", settings)
	}
	look = appearance.Appearance{Revision: 1, Colour: "#8a1538"}
	if _, settings := get(t, h, "/config.json"); !strings.Contains(settings, `"accent":"light-dark(#8a1538, #`) || !strings.Contains(settings, `"on-accent":"light-dark(#ffffff, #000000)"`) {
		t.Errorf("settings %s, want the colour", settings)
	}
}
