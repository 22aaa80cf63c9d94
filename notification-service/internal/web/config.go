package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/cityconnect/cityconnect/notification-service/internal/appearance"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/config"
)

// A Config says how a city set its page up. See docs/configuration.md.
type Config struct {
	// CityName is what the city calls itself, and Languages are those of its residents,
	// the city's first one first. report-service reads both too.
	CityName  config.CityName  `env:"CITY_NAME" envDefault:"CityConnect" example:"Kota Bogor"`
	Languages config.Languages `env:"CITY_LANGUAGES" envDefault:"en,id" example:"id,en"`
	// CityWords is the folder with the city's words in languages besides ours.
	CityWords string                `env:"CITY_WORDS" example:"/srv/words"`
	Words     []wording.Translation // of CityWords
	// CityLogo is the file of its coat of arms or logo, and CityLinks are what is in
	// the page's footer.
	CityLogo  string           `env:"CITY_LOGO" example:"/srv/logo.svg"`
	CityLinks config.CityLinks `env:"CITY_LINKS" example:"privacy=https://city.example.org/privacy,emergency=112"`

	// ClientID is the page's own at the identity provider (AUTH_ISSUER), which
	// sends people back to the page's address with a slash at its end.
	ClientID string `env:"PAGE_OIDC_CLIENT_ID" example:"cityconnect-page"`
	Scope    string `env:"PAGE_OIDC_SCOPE" envDefault:"openid profile"`
	// OIDCAudience and OIDCResource name the API that the token is for, where the
	// provider gives one that nobody else can read otherwise: the former for Auth0,
	// the latter by RFC 8707.
	OIDCAudience string `env:"PAGE_OIDC_AUDIENCE" example:"cityconnect"`
	OIDCResource string `env:"PAGE_OIDC_RESOURCE" example:"https://city.example.org"`
	// MapFile has the city's map; without one there are positions, and no streets.
	MapFile        string `env:"PAGE_MAP_FILE" example:"/srv/city.pmtiles"`
	MapAttribution string `env:"PAGE_MAP_ATTRIBUTION" envDefault:"© OpenMapTiles © OpenStreetMap contributors"`
	// MapBounds is the city, and what of the map can be looked at; by default
	// what MapFile says of itself. report-service reads it too.
	MapBounds *Bounds `env:"MAP_BOUNDS" example:"106.777,-6.604,106.934,-6.444"`
	// PhotoStore is that of report-service; here it only says whether reports may
	// have photos.
	PhotoStore string `env:"PHOTO_STORE" example:"file:///var/lib/cityconnect/photos"`
	// Comments is that of report-service; here it only says whether the page has
	// comments.
	Comments config.Switch `env:"COMMENTS" envDefault:"off" example:"on"`
	// MapCenter is where the map begins; by default the middle of the bounds.
	MapCenter *Center `env:"PAGE_MAP_CENTER" example:"106.799,-6.595,14"`
	// Geocoder says that places can be looked for beyond the map's own names.
	Geocoder bool
	// Mails says that there is a mail server, so that the page may ask for an
	// address.
	Mails bool
	// Push says that notifications are pushed to devices.
	Push bool
	// Endpoints returns where the identity provider signs people in, as far as it has
	// said so; the page may go there, as it may to the provider's own address.
	Endpoints func() []string
	// Appearance returns the city's colour; nil is none.
	Appearance func(ctx context.Context) appearance.Appearance
}

// Validate returns everything that is wrong with c.
func (c Config) Validate() []config.Fault {
	var faults config.Faults
	resource, err := url.Parse(c.OIDCResource)
	faults.Check(c.OIDCResource == "" || err == nil && resource.IsAbs() && resource.Fragment == "", "PAGE_OIDC_RESOURCE",
		"an absolute URI without a fragment (RFC 8707), such as https://city.example.org")
	if c.CityLogo != "" {
		_, err := readLogo(c.CityLogo)
		faults.Check(err == nil, "CITY_LOGO", fmt.Sprintf("the file of an SVG or PNG of at most 64 KiB: %v", err))
	}
	if c.MapFile != "" {
		_, err := readMapBounds(c.MapFile)
		faults.Check(err == nil, "PAGE_MAP_FILE", fmt.Sprintf("a PMTiles archive (version 3) of vector tiles: %v", err))
		faults.Check(c.MapAttribution != "", "PAGE_MAP_ATTRIBUTION", "the names that the licence of the map asks for, such as © OpenStreetMap contributors")
	}
	return faults
}

// settings is what /config.json says.
type settings struct {
	City     city    `json:"city"`
	Auth     signIn  `json:"auth"`
	Map      cityMap `json:"map"`
	Mails    bool    `json:"mails,omitempty"`
	Push     bool    `json:"push,omitempty"`
	Photos   bool    `json:"photos,omitempty"`
	Comments bool    `json:"comments,omitempty"`
	Guests   bool    `json:"guests,omitempty"` // people report without an account
}

// city is what a city says of itself. The logo's address is absent without one.
type city struct {
	Name      config.CityName  `json:"name"`
	Languages config.Languages `json:"languages"`
	// Words are the languages that the page has besides its own: each by its own name.
	Words map[wording.Language]string `json:"words,omitempty"`
	Logo  string                      `json:"logo,omitempty"`
	Links config.CityLinks            `json:"links"`
	// Colours are the page's in both themes, as values of CSS; absent without a colour of
	// the city.
	Colours map[string]string `json:"colours,omitempty"`
}

// signIn says how people sign in: mode is dev, oidc or none.
type signIn struct {
	Mode     string `json:"mode"`
	Issuer   string `json:"issuer,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	Scope    string `json:"scope,omitempty"`
	Audience string `json:"audience,omitempty"`
	Resource string `json:"resource,omitempty"`
}

// cityMap says where the city is, and where its map comes from. All is absent
// where nobody has said it.
type cityMap struct {
	Tiles       string  `json:"tiles,omitempty"`
	Attribution string  `json:"attribution,omitempty"`
	Bounds      *Bounds `json:"bounds,omitempty"`
	Center      *Center `json:"center,omitempty"`
	Geocoder    bool    `json:"geocoder,omitempty"`
}

func (c Config) settings(sign auth.Config) settings {
	s := settings{City: city{Name: c.CityName, Languages: c.Languages, Links: c.CityLinks}, Auth: signIn{Mode: "none"}, Mails: c.Mails, Push: c.Push, Photos: c.PhotoStore != "", Comments: bool(c.Comments), Guests: bool(sign.Guests)}
	for _, t := range c.Words {
		if s.City.Words == nil {
			s.City.Words = make(map[wording.Language]string)
		}
		s.City.Words[t.Language] = t.Parts["page"]["language.name"]
	}
	switch {
	case sign.Mode == auth.Dev:
		s.Auth.Mode = "dev"
	case c.signsIn(sign):
		s.Auth = signIn{Mode: "oidc", Issuer: sign.Issuer, ClientID: c.ClientID, Scope: c.Scope, Audience: c.OIDCAudience, Resource: c.OIDCResource}
	}
	if c.CityLogo != "" {
		s.City.Logo = logoPath
	}
	s.Map = cityMap{Bounds: c.City(), Center: c.MapCenter, Geocoder: c.Geocoder}
	if c.MapFile != "" {
		s.Map.Tiles, s.Map.Attribution = mapPath, c.MapAttribution
	}
	return s
}

// asset returns a function that makes /config.json, again whenever the city's appearance
// has changed.
func (c Config) asset(sign auth.Config) func(context.Context) *asset {
	var mu sync.Mutex
	var made *asset
	var of int64
	return func(ctx context.Context) *asset {
		var look appearance.Appearance
		if c.Appearance != nil {
			look = c.Appearance(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		if made != nil && of == look.Revision {
			return made
		}
		s := c.settings(sign)
		if light, dark, ok := look.Tones(); ok {
			both := func(a, b string) string { return "light-dark(" + a + ", " + b + ")" }
			s.City.Colours = map[string]string{"accent": both(light.Accent, dark.Accent), "on-accent": both(light.OnAccent, dark.OnAccent), "accent-soft": both(light.Soft, dark.Soft)}
		}
		body, err := json.Marshal(s)
		if err != nil {
			panic(err) // of texts and numbers
		}
		made, of = newAsset("config.json", body), look.Revision
		return made
	}
}

// City returns the bounds of the city, or nil if nobody has said where it is.
func (c Config) City() *Bounds {
	if c.MapBounds != nil || c.MapFile == "" {
		return c.MapBounds
	}
	bounds, err := readMapBounds(c.MapFile)
	if err != nil {
		return nil
	}
	return &bounds
}

// signsIn reports whether people sign in with the identity provider.
func (c Config) signsIn(sign auth.Config) bool { return sign.Mode != auth.Dev && c.ClientID != "" }

// policy lets the page load and reach its own origin alone, and beyond it only
// the identity provider that the city named, with the origins that it has said are its
// own. The map draws in a worker.
func (c Config) policy(sign auth.Config) string {
	connect, frame := "'self'", ""
	if c.signsIn(sign) {
		origins := []string{origin(sign.Issuer)}
		if c.Endpoints != nil {
			for _, endpoint := range c.Endpoints() {
				origins = append(origins, origin(endpoint))
			}
		}
		slices.Sort(origins)
		provider := strings.Join(slices.Compact(origins), " ")
		connect += " " + provider
		frame = "frame-src 'self' " + provider + "; " // where the session is renewed
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; " +
		"worker-src 'self'; manifest-src 'self'; connect-src " + connect + "; " + frame + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// origin returns the scheme and host of a URL, and nothing for anything else.
func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
