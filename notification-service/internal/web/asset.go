package web

import (
	"bytes"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/service"
)

const (
	// forEver is for files with a hash of their content in the name.
	forEver = "public, max-age=31536000, immutable"
	// askAgain is for files whose name stays when they change.
	askAgain = "no-cache"
)

// types are what the page consists of. Those of the machine may differ.
var types = map[string]string{
	".html":        "text/html; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".json":        "application/json",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".webmanifest": "application/manifest+json",
	".woff2":       "font/woff2",
	".yaml":        "application/yaml", // RFC 9512
}

// An asset is a file, ready to be sent.
type asset struct {
	body        []byte
	gzipped     func() []byte // nil where it would not be smaller
	contentType string
	etag        string
	cache       string
}

// load reads all files of built.
func load(built fs.FS) (map[string]*asset, error) {
	assets := make(map[string]*asset)
	err := fs.WalkDir(built, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(built, name)
		if err != nil {
			return fmt.Errorf("read the page's %s: %w", name, err)
		}
		assets["/"+name] = newAsset(name, body)
		return nil
	})
	return assets, err
}

func newAsset(name string, body []byte) *asset {
	a := &asset{
		body: body,
		// When it is first requested: all assets together would take longer than the rest of
		// the start.
		gzipped:     sync.OnceValue(func() []byte { return service.Gzip(body) }),
		contentType: types[path.Ext(name)],
		etag:        service.Tag(body),
		cache:       askAgain,
	}
	if a.contentType == "" {
		a.contentType = mime.TypeByExtension(path.Ext(name))
	}
	if strings.HasPrefix(name, "assets/") {
		a.cache = forEver
	}
	return a
}

func (a *asset) serve(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", a.cache)
	body, etag := a.body, a.etag
	if packed := a.gzipped(); packed != nil {
		h.Add("Vary", "Accept-Encoding")
		if service.AcceptsGzip(r) {
			h.Set("Content-Encoding", "gzip")
			// Another encoding is another representation (RFC 9110, 8.8.3.3).
			body, etag = packed, strings.TrimSuffix(etag, `"`)+`-gzip"`
		}
	}
	if status != http.StatusOK { // nobody caches this, or requests a part of it
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
		return
	}
	h.Set("ETag", etag)
	// ServeContent handles conditions, HEAD and ranges.
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
