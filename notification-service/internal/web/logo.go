package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"strings"
)

const (
	// logoPath is where browsers read the city's logo.
	logoPath = "/city/logo"
	// maxLogo is how large its file may be: it is on every screen.
	maxLogo = 64 << 10
	// maxLogoSide bounds what a browser decodes, in pixels.
	maxLogoSide = 4096
	// logoPolicy is for who opens the logo by itself: a drawing runs no script and
	// loads nothing, whatever is written in it.
	logoPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'"
)

// readLogo reads the city's logo, an SVG or a PNG by its content.
func readLogo(name string) (*asset, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	body, err := io.ReadAll(io.LimitReader(file, maxLogo+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxLogo:
		return nil, errors.New("the file is larger than 64 KiB")
	case isPNG(body):
		return newAsset("logo.png", body), nil
	case isSVG(body):
		return newAsset("logo.svg", body), nil
	}
	return nil, errors.New("the file is neither a whole SVG nor a whole PNG of at most 4096 × 4096 pixels")
}

func isPNG(body []byte) bool {
	config, err := png.DecodeConfig(bytes.NewReader(body))
	if err != nil || config.Width > maxLogoSide || config.Height > maxLogoSide {
		return false
	}
	_, err = png.Decode(bytes.NewReader(body))
	return err == nil
}

// isSVG reports whether body is one XML document whose root is an svg. Entities of its
// own are not read, so a document that uses some is none.
func isSVG(body []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(body))
	root := false
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return root && depth == 0
		}
		if err != nil {
			return false
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 && (root || t.Name.Local != "svg" || t.Name.Space != "http://www.w3.org/2000/svg") {
				return false
			}
			root = true
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			if depth == 0 && strings.TrimSpace(string(t)) != "" {
				return false
			}
		}
	}
}
