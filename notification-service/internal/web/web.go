// Package web serves the page that browsers get.
//
// Its sources are in app, and dist holds what Vite made of them. dist is
// committed, so that the service builds where there is no Node; a test builds
// it again and compares. The page loads nothing from elsewhere, runs no inline
// script, and reads from /config.json how its city signs people in and where it
// is. The city's map is one file, of which browsers read what they show.
//
// Every screen has an address, and all of them are one file: index.html. An
// address that the page does not know gets it too, with status 404, because the
// page says so in the reader's language.
package web

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/service"
)

//go:embed all:dist
var dist embed.FS

// New returns the handler of the page, which signs people in as sign says.
func New(cfg Config, sign auth.Config) (http.Handler, error) {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	assets, err := load(built)
	if err != nil {
		return nil, err
	}
	if err := nameCity(assets, cmp.Or(string(cfg.CityName), builtName)); err != nil {
		return nil, err
	}
	if cfg.CityLogo != "" {
		if assets[logoPath], err = readLogo(cfg.CityLogo); err != nil {
			return nil, fmt.Errorf("read logo: %w", err)
		}
	}
	for _, t := range cfg.Words {
		for part, words := range t.Parts {
			body, err := json.Marshal(words)
			if err != nil {
				return nil, err
			}
			name := fmt.Sprintf("words/%s.%s.json", part, t.Language)
			assets["/"+name] = newAsset(name, body)
		}
	}
	assets["/"] = assets["/index.html"]
	return &page{
		assets: assets, config: cfg.asset(sign), policy: func() string { return cfg.policy(sign) }, mapFile: cfg.MapFile,
		docs: sync.OnceValues(makeDocs),
	}, nil
}

type page struct {
	assets  map[string]*asset // by path
	policy  func() string
	config  func(context.Context) *asset
	mapFile string
	docs    func() (map[string]*asset, error) // by path; made when one is first requested
}

// builtName is what the built files call the city.
const builtName = "CityConnect"

// nameCity puts the city's name where the built files have another: into the page, as
// who runs no script reads it, and into the manifest, by which it is installed.
func nameCity(assets map[string]*asset, name string) error {
	index := bytes.ReplaceAll(assets["/index.html"].body, []byte(builtName), []byte(html.EscapeString(name)))
	assets["/index.html"] = newAsset("index.html", index)
	const manifest = "/manifest.webmanifest"
	var fields map[string]any
	if err := json.Unmarshal(assets[manifest].body, &fields); err != nil {
		return fmt.Errorf("read the page's manifest: %w", err)
	}
	fields["name"], fields["short_name"] = name, name
	named, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	assets[manifest] = newAsset(manifest, named)
	return nil
}

// renewPath is where the identity provider answers when the page renews its
// session.
const renewPath = "/renew.html"

// screens has the first part of each screen's address; ui/router.tsx has the
// same. Reports share theirs with the API: the gateway sends clients here that ask for
// HTML, and programs that show a link with its title, which ask for anything or nothing.
var screens = []string{"reports", "mine", "settings", "new", "filed", "queue", "ops", "j", "sign-in"}

// ServeHTTP answers with an asset, compressed where the browser likes it.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := path.Clean(r.URL.Path)
	if name == mapPath && p.mapFile != "" {
		serveMap(w, r, p.mapFile)
		return
	}
	a, status := p.assets[name], http.StatusOK
	if name == "/config.json" {
		a = p.config(r.Context())
	}
	if name == docsPath || strings.HasPrefix(name, docsPath+"/") {
		made, err := p.docs()
		if err != nil {
			panic(err) // a test makes them
		}
		a = made[name]
	}
	if a == nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		first, _, _ := strings.Cut(name[1:], "/")
		accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
		switch html := strings.Contains(accept, "text/html"); {
		case slices.Contains(screens, first) && (html || !strings.Contains(accept, "json")):
			a = p.assets["/index.html"]
		case html:
			a, status = p.assets["/index.html"], http.StatusNotFound
		}
	}
	if a == nil {
		service.NotFoundHandler(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy())
	if name == renewPath { // the page itself has it in a frame
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; frame-ancestors 'self'")
	}
	if name == logoPath {
		h.Set("Content-Security-Policy", logoPolicy)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Permissions-Policy", "geolocation=(self), camera=(), microphone=()")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if a == p.assets["/index.html"] {
		h.Add("Vary", "Accept") // the API has answers at the same address
	}
	a.serve(w, r, status)
}
