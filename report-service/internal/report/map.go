package report

import (
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// UnmarshalText reads the format of ParseBox.
func (b *Box) UnmarshalText(text []byte) error {
	box, err := ParseBox(string(text))
	if err != nil {
		return err
	}
	*b = *box
	return nil
}

// Contains reports whether p lies in b.
func (b Box) Contains(p Position) bool {
	if p.Latitude < b.South || p.Latitude > b.North {
		return false
	}
	if b.West <= b.East {
		return p.Longitude >= b.West && p.Longitude <= b.East
	}
	return p.Longitude >= b.West || p.Longitude <= b.East
}

// NewPosition returns the place at two numbers of degrees, to a metre: further
// digits tell which device measured it and nothing of the place.
func NewPosition(latitude, longitude float64) *Position {
	return &Position{Latitude: toMetre(latitude), Longitude: toMetre(longitude)}
}

func toMetre(degrees float64) float64 { return math.Round(degrees*1e5) / 1e5 }

// CheckPosition refuses a position outside of the city. A nil city is the whole
// globe, and a nil position is in every city.
func CheckPosition(p *Position, city *Box) error {
	if p == nil || city == nil || city.Contains(*p) {
		return nil
	}
	return fault.NewInvalid("/latitude", fmt.Sprintf("outside of the city: latitude must be from %g to %g and longitude from %g to %g",
		city.South, city.North, city.West, city.East))
}

// PlaceIn returns the position at a latitude and a longitude of a file, if it is in a city;
// nil is the whole globe. Otherwise it returns the kind of the fault, and what must hold.
func PlaceIn(city *Box, latitude, longitude float64) (p *Position, code, must string) {
	onGlobe := func(latitude, longitude float64) bool { return math.Abs(latitude) <= 90 && math.Abs(longitude) <= 180 }
	inCity := func(latitude, longitude float64) bool {
		return onGlobe(latitude, longitude) && CheckPosition(NewPosition(latitude, longitude), city) == nil
	}
	switch {
	case inCity(latitude, longitude):
		return NewPosition(latitude, longitude), "", ""
	case inCity(longitude, latitude):
		return nil, "swapped", "latitude and longitude must not be swapped; GeoJSON has the longitude first"
	case onGlobe(latitude, longitude):
		return nil, "outside", "must be in the city"
	}
	return nil, "position", "must be degrees (WGS 84): a latitude from -90 to 90 and a longitude from -180 to 180"
}

// Zooms of the web's maps: at 0 the globe is 256 pixels wide, and each further
// one doubles that.
const (
	MaxZoom = 22
	// clusterPixels is the width of the squares whose reports are one cluster.
	clusterPixels = 72
	worldPixels   = 256
	// maxSquares is how many of them there are at most from one side of a map to the
	// other: twice as many as the widest screens show. Otherwise a whole city at the
	// zoom of a house would be as many clusters as there are reports.
	maxSquares = 100
)

// A Grid has the edges, in degrees, of the squares in which reports are drawn as
// one cluster.
type Grid struct{ Latitude, Longitude float64 }

// GridOf returns the grid of a map that shows b at a zoom.
func GridOf(b Box, zoom int) Grid {
	wide := 360 * clusterPixels / (worldPixels * math.Exp2(float64(zoom)))
	// A degree of latitude is more pixels high the nearer the poles are.
	middle := math.Min(math.Abs(b.South+b.North)/2, 85) * math.Pi / 180
	width := b.East - b.West
	if width < 0 { // it spans the antimeridian
		width += 360
	}
	return Grid{
		Latitude:  max(wide*math.Cos(middle), (b.North-b.South)/maxSquares),
		Longitude: max(wide, width/maxSquares),
	}
}

// A MapPoint is a report on a map.
type MapPoint struct {
	ID       uuid.UUID
	Title    string
	Status   Status
	Position Position
}

// A MapCluster is reports near each other.
type MapCluster struct {
	Count    int64
	Statuses map[Status]int64 // how many of them have each status
	Center   Position         // the middle of the reports
}

// A Map is what an area of a map shows: every report of it, or else clusters.
type Map struct {
	Points   []MapPoint
	Clusters []MapCluster
	Hidden   string // identifies the reports that were hidden when the clusters were read
}
