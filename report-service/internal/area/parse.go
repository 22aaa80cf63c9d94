package area

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paulmach/orb"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// MaxBytes bounds a file.
	MaxBytes = 5 << 20
	// MaxAreas bounds how many areas a file has.
	MaxAreas = 500

	maxName      = 80
	minPositions = 4  // of a ring, of which the last is the first (RFC 7946, 3.1.6)
	maxFaults    = 20 // that are listed; authors of files correct a few at a time
	// maxPairs bounds how many pairs of lines are compared to find rings that cross
	// themselves. Files of real borders need a hundredth of it.
	maxPairs = 50_000_000
	// dust is up to how many square metres a loop of a border, a hole or a polygon is left
	// out: programs that simplify or convert borders leave such behind, by the dozen.
	dust = 3.0
	// maxCut bounds the points of all rings that are compared again after a loop was cut.
	maxCut = 2_000_000
)

// file is as much of a FeatureCollection as matters here.
type file struct {
	Type     string            `json:"type"`
	Features []json.RawMessage `json:"features"`
}

// feature is as much of a Feature as matters here.
type feature struct {
	Type     string `json:"type"`
	Geometry struct {
		Type        string `json:"type"`
		Coordinates any    `json:"coordinates"`
	} `json:"geometry"`
	Properties struct {
		Code  any `json:"code"` // a text, or a number without a fraction
		Names any `json:"names"`
	} `json:"properties"`
}

// Parse reads a FeatureCollection of polygons and multipolygons, of a city whose residents
// read languages. It returns the faults of the file, the first maxFaults of them, or its
// areas, and how many loops, holes and polygons without a surface were left out.
func Parse(body []byte, languages []string) (areas []Area, leftOut int, faults []service.FieldError) {
	p := parser{languages: languages, codes: make(map[string]int), pairs: maxPairs, cut: maxCut}
	var f file
	switch err := json.Unmarshal(body, &f); {
	case err != nil || f.Type != "FeatureCollection":
		return nil, 0, []service.FieldError{{Pointer: "/type", Detail: `the file must be a FeatureCollection of GeoJSON (RFC 7946), with "features"`, Code: "collection"}}
	case len(f.Features) > MaxAreas:
		return nil, 0, []service.FieldError{{Pointer: "/features", Detail: fmt.Sprintf("must be at most %d features", MaxAreas), Code: "too-many"}}
	}
	areas = make([]Area, len(f.Features))
	for i, text := range f.Features {
		if areas[i] = p.feature(i, text); len(p.faults) >= maxFaults {
			break
		}
	}
	return areas, p.leftOut, p.faults
}

// A parser collects the faults of a file.
type parser struct {
	languages []string
	codes     map[string]int // the features that have them
	faults    []service.FieldError
	pairs     int // of lines that may still be compared
	cut       int // points that may still be compared again
	leftOut   int // loops, holes and polygons

	// The feature that is read.
	number int
	code   string
}

// fault adds a fault of the present feature. The steps lead from the feature to the part at
// fault; where says the same in words.
func (p *parser) fault(code, steps, where, must string) {
	if len(p.faults) >= maxFaults {
		return
	}
	name := fmt.Sprintf("feature %d", p.number)
	if p.code != "" {
		name += fmt.Sprintf(" (%q)", p.code)
	}
	p.faults = append(p.faults, service.FieldError{Pointer: fmt.Sprintf("/features/%d%s", p.number, steps), Detail: name + where + ": " + must, Code: code})
}

func (p *parser) feature(i int, text json.RawMessage) Area {
	p.number, p.code = i, ""
	var f feature
	if err := json.Unmarshal(text, &f); err != nil || f.Type != "Feature" {
		p.fault("feature", "", "", `must be a Feature of GeoJSON, with "geometry" and "properties"`)
		return Area{}
	}
	p.code = code(f.Properties.Code)
	a := Area{Area: report.Area{Code: p.code}, Names: p.names(f.Properties.Names)}
	switch other, twice := p.codes[a.Code]; {
	case !codeForm.MatchString(a.Code):
		p.code = ""
		p.fault("code", "/properties/code", "", "code must be 1 to 40 letters, digits, dots, hyphens and underscores, and begin with a letter or a digit")
	case twice:
		p.fault("code-twice", "/properties/code", "", fmt.Sprintf("code must not be that of feature %d", other))
	default:
		p.codes[a.Code] = i
	}
	before := len(p.faults)
	switch f.Geometry.Type {
	case "Polygon":
		a.Shape = p.polygon(nil, f.Geometry.Coordinates, "/geometry/coordinates", "")
	case "MultiPolygon":
		polygons, ok := f.Geometry.Coordinates.([]any)
		if !ok {
			p.fault("geometry", "/geometry/coordinates", "", "must be a list of polygons")
		}
		for i, polygon := range polygons {
			a.Shape = p.polygon(a.Shape, polygon, fmt.Sprintf("/geometry/coordinates/%d", i), fmt.Sprintf(", polygon %d", i))
		}
	default:
		p.fault("geometry", "/geometry/type", "", "geometry must be a Polygon or a MultiPolygon")
	}
	if len(a.Shape) == 0 && len(p.faults) == before {
		p.fault("empty", "/geometry/coordinates", "", fmt.Sprintf("must enclose a surface of more than %g square metres", dust))
	}
	return a
}

var (
	codeForm     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)
	languageForm = regexp.MustCompile(`^[a-z]{2,3}$`)
)

// code returns the code of a feature, or "". Programs write one of digits as a number.
func code(value any) string {
	if number, ok := value.(float64); ok && number == math.Trunc(number) && math.Abs(number) < 1<<53 {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	text, _ := value.(string)
	return text
}

// names reads the names by language.
func (p *parser) names(value any) map[string]string {
	given, _ := value.(map[string]any)
	names := make(map[string]string, len(given))
	all := slices.AppendSeq(slices.Clone(p.languages), maps.Keys(given))
	slices.Sort(all)
	for _, language := range slices.Compact(all) {
		name, _ := given[language].(string)
		name = strings.TrimSpace(name)
		switch {
		case !languageForm.MatchString(language):
			p.fault("names", "/properties/names", "", "names must be by language, such as \"en\"")
		case name == "" && slices.Contains(p.languages, language):
			p.fault("name-missing", "/properties/names/"+language, "", fmt.Sprintf("must have a name in each of the city's languages (%s); %s is missing", strings.Join(p.languages, ", "), language))
		case name == "" || utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
			p.fault("name", "/properties/names/"+language, "", fmt.Sprintf("name must be a line of 1 to %d characters", maxName))
		default:
			names[language] = name
		}
	}
	return names
}

// polygon returns shape with a polygon, if it has a surface.
func (p *parser) polygon(shape Shape, value any, steps, where string) Shape {
	rings, ok := value.([]any)
	if !ok {
		p.fault("geometry", steps, where, "must be a list of rings, the outer one first")
		return shape
	}
	var polygon orb.Polygon
	for i, points := range rings {
		ring, ok := p.ring(points, fmt.Sprintf("%s/%d", steps, i), fmt.Sprintf("%s, ring %d", where, i))
		switch {
		case !ok: // a fault
		case ring != nil:
			polygon = append(polygon, ring)
		case i == 0: // its holes go with it
			p.leftOut++
			return shape
		default:
			p.leftOut++
		}
	}
	if len(rings) == 0 {
		p.leftOut++
		return shape
	}
	return append(shape, polygon)
}

// ring reads a ring, which is nil if it has no surface. ok is false if it has a fault.
func (p *parser) ring(value any, steps, where string) (ring orb.Ring, ok bool) {
	points, ok := value.([]any)
	if !ok {
		p.fault("geometry", steps, where, "must be a list of points")
		return nil, false
	}
	ring = make(orb.Ring, len(points))
	for i, point := range points {
		if must := position(point, &ring[i]); must != "" {
			p.fault("position", fmt.Sprintf("%s/%d", steps, i), fmt.Sprintf("%s, point %d", where, i), must)
			return nil, false // one fault a ring: where one point is wrong, most are
		}
	}
	last := len(ring) - 1
	if last > 0 && ring[0] != ring[last] {
		p.fault("open", fmt.Sprintf("%s/%d", steps, last), fmt.Sprintf("%s, point %d", where, last), "the ring is not closed: the last point must be the first")
		return nil, false
	}
	for len(ring) >= minPositions {
		a, b, crosses := p.crossing(ring)
		if !crosses {
			break
		}
		less := withoutLoop(ring, a, b)
		if p.cut -= len(ring); less == nil || p.cut < 0 {
			p.fault("crosses", fmt.Sprintf("%s/%d", steps, a), fmt.Sprintf("%s, point %d", where, a),
				fmt.Sprintf("the ring crosses itself: the line from here must not cross the one from point %d; mapshaper -clean and ogr2ogr -makevalid correct that", b))
			return nil, false
		}
		ring = less
		p.leftOut++
	}
	if len(ring) < minPositions || surface(ring) <= dust {
		return nil, true
	}
	return ring, true
}

// withoutLoop returns a ring whose lines from the points a and b cross without the loop
// between them, or without the rest if that is the smaller one, or nil if both are more
// than dust.
func withoutLoop(ring orb.Ring, a, b int) orb.Ring {
	p, q := ring[a], ring[a+1]
	part := side(ring[b], ring[b+1], p) / (side(ring[b], ring[b+1], p) - side(ring[b], ring[b+1], q))
	crossing := orb.Point{p[0] + part*(q[0]-p[0]), p[1] + part*(q[1]-p[1])}
	loop := slices.Concat(orb.Ring{crossing}, ring[a+1:b+1], orb.Ring{crossing})
	rest := slices.Concat(ring[:a+1], orb.Ring{crossing}, ring[b+1:])
	switch {
	case spread(loop) <= dust:
		return rest
	case spread(rest) <= dust:
		return loop
	}
	return nil
}

// position reads a position into p, and returns what it must be if it is none. Altitudes
// are left out.
func position(value any, p *orb.Point) (must string) {
	numbers, ok := value.([]any)
	if !ok || len(numbers) < 2 {
		return "must be a longitude and a latitude, in this order"
	}
	for i := range p {
		n, ok := numbers[i].(float64)
		limit, name := 180.0, "longitude"
		if i == 1 {
			limit, name = 90, "latitude"
		}
		if !ok || math.Abs(n) > limit {
			return fmt.Sprintf("%s must be a number of degrees (WGS 84) from %g to %g; it comes %s", name, -limit, limit, [2]string{"first", "second"}[i])
		}
		p[i] = n
	}
	return ""
}

// squareDegree is the surface of a square degree at the equator, in square metres.
const squareDegree = 111_320 * 111_320

// triangles yields the surfaces of the triangles of ring's first point with its lines, in
// square metres: negative ones are to the right.
func triangles(ring orb.Ring) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for i := 1; i < len(ring); i++ {
			if !yield(side(ring[0], ring[i-1], ring[i]) / 2 * squareDegree * math.Cos(ring[0][1]*math.Pi/180)) {
				return
			}
		}
	}
}

// surface returns what a ring that does not cross itself encloses, in square metres.
func surface(ring orb.Ring) (sum float64) {
	for part := range triangles(ring) {
		sum += part
	}
	return math.Abs(sum)
}

// spread is surface for a ring that may cross itself: parts do not cancel each other.
func spread(ring orb.Ring) (sum float64) {
	for part := range triangles(ring) {
		sum += math.Abs(part)
	}
	return sum
}

// crossing returns the points from which two lines of ring begin that cross each other.
// Lines that only touch are left alone: borders of cities do. It compares those lines that
// are above each other, which are few, and gives up after the file's maxPairs.
func (p *parser) crossing(ring orb.Ring) (a, b int, crosses bool) {
	lines := make([]int, len(ring)-1)
	for i := range lines {
		lines[i] = i
	}
	west := func(i int) float64 { return min(ring[i][0], ring[i+1][0]) }
	slices.SortFunc(lines, func(i, j int) int { return cmp.Compare(west(i), west(j)) })
	for n, i := range lines {
		east := max(ring[i][0], ring[i+1][0])
		for _, j := range lines[n+1:] {
			if west(j) > east || p.pairs == 0 {
				break
			}
			p.pairs--
			if apart(ring[i], ring[i+1], ring[j], ring[j+1]) && apart(ring[j], ring[j+1], ring[i], ring[i+1]) {
				return min(i, j), max(i, j), true
			}
		}
	}
	return 0, 0, false
}

// apart reports whether c and d are on different sides of the line through a and b.
func apart(a, b, c, d orb.Point) bool { return side(a, b, c)*side(a, b, d) < 0 }

// side is positive for c left of the way from a to b, negative right of it, and 0 on it.
func side(a, b, c orb.Point) float64 {
	return (b[0]-a[0])*(c[1]-a[1]) - (b[1]-a[1])*(c[0]-a[0])
}
