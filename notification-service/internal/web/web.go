// Package web serves the page that browsers get.
//
// Its sources are in app, and dist holds what Vite made of them. dist is
// committed, so that the service builds where there is no Node; a test makes
// it anew and compares. The page loads nothing from elsewhere, runs no inline
// script, and is told by /config.json how its city signs people in.
package web

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"

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
	settings, err := json.Marshal(cfg.settings(sign))
	if err != nil {
		return nil, err
	}
	assets["/config.json"] = newAsset("config.json", settings)
	assets["/"] = assets["/index.html"]
	return &page{assets: assets, policy: cfg.policy(sign)}, nil
}

type page struct {
	assets map[string]*asset // by path
	policy string
}

// ServeHTTP answers with an asset, compressed where the browser likes it.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := p.assets[path.Clean(r.URL.Path)]
	if !ok {
		service.NotFoundHandler(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Permissions-Policy", "geolocation=(self), camera=(), microphone=()")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	a.serve(w, r)
}
