package web

import (
	"net/url"
	"strings"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/config"
)

// A Config says how a city set its page up. See docs/configuration.md.
type Config struct {
	// ClientID is the page's own at the identity provider (AUTH_ISSUER), which
	// sends people back to the page's address with a slash at its end.
	ClientID string `env:"PAGE_OIDC_CLIENT_ID" example:"cityconnect-page"`
	Scope    string `env:"PAGE_OIDC_SCOPE" envDefault:"openid profile"`
	// TilesURL is where map tiles come from; without one the map is a plot.
	TilesURL         string `env:"PAGE_TILES_URL" example:"https://tiles.example.org/{z}/{x}/{y}.png"`
	TilesAttribution string `env:"PAGE_TILES_ATTRIBUTION" example:"© OpenStreetMap contributors"`
}

// Validate returns everything that is wrong with c.
func (c Config) Validate() []config.Fault {
	var faults config.Faults
	if c.TilesURL != "" {
		faults.Check(origin(c.TilesURL) != "" && strings.Contains(c.TilesURL, "{z}"),
			"PAGE_TILES_URL", "a template such as https://tiles.example.org/{z}/{x}/{y}.png")
		faults.Check(c.TilesAttribution != "", "PAGE_TILES_ATTRIBUTION", "whom the tiles are owed to, such as © OpenStreetMap contributors")
	}
	return faults
}

// settings is what /config.json says.
type settings struct {
	Auth  signIn `json:"auth"`
	Tiles *tiles `json:"tiles,omitempty"`
}

// signIn says how people sign in: mode is dev, oidc or none.
type signIn struct {
	Mode     string `json:"mode"`
	Issuer   string `json:"issuer,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	Scope    string `json:"scope,omitempty"`
}

type tiles struct {
	URL         string `json:"url"`
	Attribution string `json:"attribution"`
}

func (c Config) settings(sign auth.Config) settings {
	s := settings{Auth: signIn{Mode: "none"}}
	switch {
	case sign.Mode == auth.Dev:
		s.Auth.Mode = "dev"
	case c.ClientID != "":
		s.Auth = signIn{Mode: "oidc", Issuer: sign.Issuer, ClientID: c.ClientID, Scope: c.Scope}
	}
	if c.TilesURL != "" {
		s.Tiles = &tiles{URL: c.TilesURL, Attribution: c.TilesAttribution}
	}
	return s
}

// policy lets the page load and reach its own origin alone, and beyond it only
// what the city named: the identity provider and the server of map tiles.
func (c Config) policy(sign auth.Config) string {
	connect, img := "'self'", "'self' data:"
	if c.settings(sign).Auth.Mode == "oidc" {
		connect += " " + origin(sign.Issuer)
	}
	if c.TilesURL != "" {
		img += " " + origin(c.TilesURL)
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src " + img +
		"; connect-src " + connect + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// origin returns the scheme and host of a URL, or of a template of one that
// names its host's first part {s}; it is empty for anything else.
func origin(raw string) string {
	u, err := url.Parse(strings.NewReplacer("{s}", "*", "{", "", "}", "").Replace(raw))
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
