package web

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/cityconnect/cityconnect/platform/service"
)

const (
	// mapPath is where browsers read the city's map.
	mapPath = "/map/city.pmtiles"
	// mapCache is how long a part of it is used without asking. The reader
	// notices by the ETag when the file was replaced.
	mapCache = "public, max-age=3600"
)

// Bounds are the city's edges in degrees: west, south, east, north.
type Bounds [4]float64

// UnmarshalText reads "west,south,east,north".
func (b *Bounds) UnmarshalText(text []byte) error {
	if err := readDegrees(text, b[:]); err != nil {
		return fmt.Errorf("must be west,south,east,north in degrees, such as 106.777,-6.604,106.934,-6.444: %w", err)
	}
	if b[0] >= b[2] || b[1] >= b[3] || b[0] < -180 || b[2] > 180 || b[1] < -90 || b[3] > 90 {
		return errors.New("must be west,south,east,north in degrees, west below east and south below north")
	}
	return nil
}

// A Center is where the map begins: longitude, latitude, zoom.
type Center [3]float64

// UnmarshalText reads "longitude,latitude,zoom".
func (c *Center) UnmarshalText(text []byte) error {
	if err := readDegrees(text, c[:]); err != nil {
		return fmt.Errorf("must be longitude,latitude,zoom, such as 106.799,-6.595,14: %w", err)
	}
	if c[0] < -180 || c[0] > 180 || c[1] < -90 || c[1] > 90 || c[2] < 0 || c[2] > 22 {
		return errors.New("must be longitude,latitude,zoom, with a zoom from 0 to 22")
	}
	return nil
}

// readDegrees reads as many numbers as dst has, with commas between them.
func readDegrees(text []byte, dst []float64) error {
	parts := strings.Split(string(text), ",")
	if len(parts) != len(dst) {
		return fmt.Errorf("%d numbers", len(parts))
	}
	for i, part := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || v != v {
			return fmt.Errorf("%q is not a number", part)
		}
		dst[i] = v
	}
	return nil
}

// The header of PMTiles, version 3: https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md
const (
	mapHeaderSize   = 127
	mapMagic        = "PMTiles\x03"
	mapTypeAt       = 99
	mapTypeMVT      = 1 // Mapbox vector tiles
	mapBoundsAt     = 102
	mapDegreeDivide = 1e7
)

// readMapBounds returns the bounds that a PMTiles archive says it has.
func readMapBounds(name string) (bounds Bounds, err error) {
	file, err := os.Open(name)
	if err != nil {
		return bounds, err
	}
	defer func() { _ = file.Close() }()
	var head [mapHeaderSize]byte
	if _, err := io.ReadFull(file, head[:]); err != nil {
		return bounds, fmt.Errorf("read %s: %w", name, err)
	}
	if string(head[:len(mapMagic)]) != mapMagic || head[mapTypeAt] != mapTypeMVT {
		return bounds, fmt.Errorf("%s is another kind of file", name)
	}
	for i := range bounds {
		bounds[i] = float64(int32(binary.LittleEndian.Uint32(head[mapBoundsAt+4*i:]))) / mapDegreeDivide
	}
	return bounds, nil
}

// serveMap answers with the requested parts of the map.
func serveMap(w http.ResponseWriter, r *http.Request, name string) {
	file, err := os.Open(name)
	if err != nil {
		service.NotFoundHandler(w, r)
		return
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		service.NotFoundHandler(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/vnd.pmtiles")
	h.Set("Cache-Control", mapCache)
	h.Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
	http.ServeContent(w, r, "", info.ModTime(), file)
}
