// Package area knows which part of the city a place is in: the areas that an operator
// uploads, as GeoJSON, and the one that has a position.
package area

import (
	"encoding/json"
	"math"
	"slices"
	"sync"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/planar"
	"github.com/paulmach/orb/simplify"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// An Area is a part of the city, such as a district.
type Area struct {
	report.Area                   // without an id until it is stored
	Names       map[string]string // by language
	Shape       Shape
	Retired     bool // whether only reports from before have it
}

// Name returns the name in the first of languages that it has one in, or else the code.
func (a Area) Name(languages ...string) string {
	for _, language := range languages {
		if name := a.Names[language]; name != "" {
			return name
		}
	}
	return a.Code
}

// A Shape is where an area is: polygons of rings of positions, the first ring of each the
// outer one, as the coordinates of a MultiPolygon of RFC 7946.
type Shape = orb.MultiPolygon

// A List is a city's areas in their order, with those that are retired behind the others.
type List struct {
	Revision int64 // how often it was replaced
	Areas    []Area
	bounds   []orb.Bound // of the areas in use, in the order of Areas

	mu   sync.Mutex
	kept map[string][]byte // see Kept
}

// NewList returns the areas in their order, retired ones last.
func NewList(revision int64, areas []Area) *List {
	l := &List{Revision: revision, Areas: areas, kept: make(map[string][]byte)}
	for _, a := range areas {
		if !a.Retired {
			l.bounds = append(l.bounds, a.Shape.Bound())
		}
	}
	return l
}

// Kept returns what make returned when it was first called for key: what is made of a list
// costs much, and is the same until the next revision.
func (l *List) Kept(key string, make func() ([]byte, error)) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	body, ok := l.kept[key]
	if ok {
		return body, nil
	}
	body, err := make()
	if err == nil {
		l.kept[key] = body
	}
	return body, err
}

// At returns the first area in use that p is in, or the zero value. It compares p with the
// bounds of all areas, which takes a microsecond for 500 of them, and with the borders of
// those that are left.
func (l *List) At(p *report.Position) report.Area {
	if p == nil {
		return report.Area{}
	}
	point := orb.Point{p.Longitude, p.Latitude}
	for i, bound := range l.bounds {
		if bound.Contains(point) && planar.MultiPolygonContains(l.Areas[i].Shape, point) {
			return l.Areas[i].Area
		}
	}
	return report.Area{}
}

// InUse returns the areas that are not retired.
func (l *List) InUse() []Area { return l.Areas[:len(l.bounds)] }

// Code returns the code of the area with the id, or "" for none.
func (l *List) Code(id int32) string {
	for _, a := range l.Areas {
		if a.ID == id {
			return a.Code
		}
	}
	return ""
}

// outlineParts is how many steps of an outline the whole city is wide: finer than the
// pixels of a screen that shows it all.
const outlineParts = 4000

// Outlines returns the shapes of the areas in use as a map draws them: with fewer points,
// and in degrees of five digits.
func (l *List) Outlines() []json.RawMessage {
	var all orb.Bound
	for i, bound := range l.bounds {
		if i == 0 {
			all = bound
		}
		all = all.Union(bound)
	}
	step := math.Max(all.Right()-all.Left(), all.Top()-all.Bottom()) / outlineParts
	outlines := make([]json.RawMessage, len(l.bounds))
	for i, a := range l.InUse() {
		outlines[i] = encode(outline(a.Shape, step))
	}
	return outlines
}

// outline returns the shape with its points at most step aside. A ring that would enclose
// nothing stays as it is.
func outline(shape Shape, step float64) Shape {
	out := make(Shape, len(shape))
	for i, polygon := range shape {
		for _, ring := range polygon {
			simple := thinned(ring, step)
			if len(simple) < minPositions {
				simple = ring.Clone()
			}
			for k, p := range simple {
				simple[k] = orb.Point{rounded(p[0]), rounded(p[1])}
			}
			out[i] = append(out[i], simple)
		}
	}
	return out
}

// pieceLength is of how many points a ring is thinned at once: that takes as many steps as
// the square of their number, and a ring may have 80,000.
const pieceLength = 1000

// thinned returns the ring with its points at most step aside.
func thinned(ring orb.Ring, step float64) (simple orb.Ring) {
	for from := 0; from < len(ring)-1; from += pieceLength {
		piece := slices.Clone(ring[from:min(from+pieceLength+1, len(ring))])
		kept := simplify.DouglasPeucker(step).LineString(orb.LineString(piece))
		if from > 0 {
			kept = kept[1:] // the last of the piece before
		}
		simple = append(simple, kept...)
	}
	return simple
}

// rounded returns degrees to a metre, as positions are.
func rounded(degrees float64) float64 { return math.Round(degrees*1e5) / 1e5 }

// Coordinates returns the shape as GeoJSON.
func (a Area) Coordinates() json.RawMessage { return encode(a.Shape) }

// encode returns the coordinates of shape as GeoJSON.
func encode(shape Shape) json.RawMessage {
	body, err := json.Marshal(shape)
	if err != nil {
		panic(err) // finite numbers only
	}
	return body
}
