package area_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/area"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

var languages = []string{"en", "id"}

// collection is a file of the features.
func collection(features ...string) string {
	return `{"type":"FeatureCollection","features":[` + strings.Join(features, ",") + `]}`
}

// feature is an area with a geometry.
func feature(code, kind, coordinates string) string {
	return fmt.Sprintf(`{"type":"Feature","properties":{"code":%q,"names":{"en":"N %s","id":"U %s"}},"geometry":{"type":%q,"coordinates":%s}}`,
		code, code, code, kind, coordinates)
}

// square is a Polygon's coordinates.
func square(west, south, size float64) string {
	return fmt.Sprintf(`[[[%[1]g,%[2]g],[%[3]g,%[2]g],[%[3]g,%[4]g],[%[1]g,%[4]g],[%[1]g,%[2]g]]]`, west, south, west+size, south+size)
}

// Each fault is named with its feature and code, its ring and its point.
func TestFaultsAreNamedWithTheirPlace(t *testing.T) {
	t.Parallel()
	good := feature("north", "Polygon", square(0, 0, 1))
	polygon := func(coordinates string) string { return collection(good, feature("south", "Polygon", coordinates)) }
	for name, tt := range map[string]struct{ file, pointer, detail string }{
		"no collection":       {good, "/type", "must be a FeatureCollection"},
		"a list":              {`[]`, "/type", "must be a FeatureCollection"},
		"no feature":          {collection(good, `{"type":"Point"}`), "/features/1", "feature 1: must be a Feature"},
		"no object":           {collection(`3`), "/features/0", "feature 0: must be a Feature"},
		"no code":             {collection(strings.Replace(good, `"code":"north",`, "", 1)), "/features/0/properties/code", "feature 0: code must be"},
		"a fraction as code":  {collection(strings.Replace(good, `"north"`, "7.5", 1)), "/features/0/properties/code", "feature 0: code must be"},
		"a code with a space": {collection(feature("the north", "Polygon", square(0, 0, 1))), "/features/0/properties/code", "feature 0: code must be"},
		"a code twice":        {collection(good, good), "/features/1/properties/code", `feature 1 ("north"): code must not be that of feature 0`},
		"a language without a name": {
			collection(strings.Replace(good, `,"id":"U north"`, "", 1)), "/features/0/properties/names/id",
			`feature 0 ("north"): must have a name in each of the city's languages (en, id); id is missing`,
		},
		"no names":           {collection(strings.Replace(good, `"names"`, `"titles"`, 1)), "/features/0/properties/names/en", `en is missing`},
		"a long name":        {collection(strings.Replace(good, "U north", strings.Repeat("u", 81), 1)), "/features/0/properties/names/id", "name must be a line of 1 to 80 characters"},
		"a name of lines":    {collection(strings.Replace(good, "U north", `U\nnorth`, 1)), "/features/0/properties/names/id", "name must be a line"},
		"no language":        {collection(strings.Replace(good, `"id":`, `"id":"x","Indonesian":`, 1)), "/features/0/properties/names", `names must be by language, such as "en"`},
		"a line":             {collection(feature("south", "LineString", `[[0,0],[1,1]]`)), "/features/0/geometry/type", `feature 0 ("south"): geometry must be a Polygon or a MultiPolygon`},
		"no geometry":        {collection(strings.Replace(good, `"geometry"`, `"place"`, 1)), "/features/0/geometry/type", "geometry must be a Polygon"},
		"no rings":           {polygon(`[]`), "/features/1/geometry/coordinates", `feature 1 ("south"): must enclose a surface of more than 3 square metres`},
		"no polygons":        {collection(feature("south", "MultiPolygon", `[]`)), "/features/0/geometry/coordinates", "must enclose a surface"},
		"three points":       {polygon(`[[[0,0],[1,0],[0,0]]]`), "/features/1/geometry/coordinates", `feature 1 ("south"): must enclose a surface`},
		"an unclosed ring":   {polygon(`[[[0,0],[1,0],[1,1],[0,1]]]`), "/features/1/geometry/coordinates/0/3", `feature 1 ("south"), ring 0, point 3: the ring is not closed`},
		"a ring on a line":   {polygon(`[[[0,0],[1,1],[2,2],[0,0]]]`), "/features/1/geometry/coordinates", "must enclose a surface"},
		"a crossing ring":    {polygon(`[[[0,0],[1,1],[1,0],[0,1],[0,0]]]`), "/features/1/geometry/coordinates/0/0", `ring 0, point 0: the ring crosses itself: the line from here must not cross the one from point 2; mapshaper -clean`},
		"metres":             {polygon(`[[[0,0],[700000,9200000],[1,1],[0,0]]]`), "/features/1/geometry/coordinates/0/1", `point 1: longitude must be a number of degrees (WGS 84) from -180 to 180; it comes first`},
		"latitude first":     {polygon(`[[[-6.5,106.8],[-6.4,106.8],[-6.4,106.9],[-6.5,106.8]]]`), "/features/1/geometry/coordinates/0/0", `point 0: latitude must be a number of degrees (WGS 84) from -90 to 90; it comes second`},
		"a word as number":   {polygon(`[[[0,0],["1",0],[1,1],[0,0]]]`), "/features/1/geometry/coordinates/0/1", "point 1: longitude must be a number"},
		"a point of one":     {polygon(`[[[0,0],[1],[1,1],[0,0]]]`), "/features/1/geometry/coordinates/0/1", "point 1: must be a longitude and a latitude"},
		"a hole that is not": {polygon(strings.TrimSuffix(square(0, 0, 9), "]") + `,[[1,1],[2,2]]]`), "/features/1/geometry/coordinates/1/1", "ring 1, point 1: the ring is not closed"},
		"the second polygon": {
			collection(feature("isles", "MultiPolygon", "["+square(0, 0, 1)+",[[[5,5],[6,5],[6,6],[5,99],[5,5]]]]")), "/features/0/geometry/coordinates/1/0/3",
			`feature 0 ("isles"), polygon 1, ring 0, point 3: latitude must be`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, faults := area.Parse([]byte(tt.file), languages)
			if len(faults) == 0 || faults[0].Pointer != tt.pointer || !strings.Contains(faults[0].Detail, tt.detail) || faults[0].Code == "" {
				t.Errorf("faults %q, want first one at %s with %q", faults, tt.pointer, tt.detail)
			}
		})
	}
}

// A file is refused with all its faults, up to twenty; one of 501 areas for their number.
func TestFaultsOfAFile(t *testing.T) {
	t.Parallel()
	var faulty []string
	for range 30 {
		faulty = append(faulty, feature("!", "Polygon", square(0, 0, 1)))
	}
	if _, _, faults := area.Parse([]byte(collection(faulty...)), languages); len(faults) != 20 {
		t.Errorf("%d faults are listed, want 20", len(faults))
	}
	var many []string
	for i := range area.MaxAreas + 1 {
		many = append(many, feature(fmt.Sprint(i), "Polygon", square(0, 0, 1)))
	}
	if _, _, faults := area.Parse([]byte(collection(many...)), languages); len(faults) != 1 || faults[0].Detail != "must be at most 500 features" {
		t.Errorf("faults %v, want that of the number", faults)
	}
	if areas, _, faults := area.Parse([]byte(collection(many[1:]...)), languages); len(areas) != 500 || len(faults) != 0 {
		t.Errorf("%d areas, faults %v; want 500", len(areas), faults)
	}
}

// Parts without a surface to speak of are left out and counted, wherever programs leave
// them; the border beside them stays.
func TestDustIsLeftOut(t *testing.T) {
	t.Parallel()
	outer := strings.TrimSuffix(square(106.8, -6.6, 0.02), "]")
	for name, tt := range map[string]struct {
		kind, coordinates string
		leftOut, points   int
	}{
		"nothing":                    {"Polygon", square(106.8, -6.6, 0.02), 0, 5},
		"a loop":                     {"Polygon", `[[[106.8,-6.6],[106.82,-6.6],[106.82,-6.58],[106.81,-6.58],[106.810001,-6.580001],[106.810001,-6.579999],[106.8099,-6.580001],[106.8,-6.58],[106.8,-6.6]]]`, 1, 8},
		"loops at the first point":   {"Polygon", `[[[106.8,-6.6],[106.800001,-6.599999],[106.82,-6.6],[106.82,-6.58],[106.8,-6.58],[106.800001,-6.6000001],[106.8,-6.6]]]`, 1, 6},
		"an empty hole":              {"Polygon", outer + `,[]]`, 1, 5},
		"a hole of a line":           {"Polygon", outer + `,[[106.81,-6.59],[106.811,-6.59],[106.81,-6.59]]]`, 1, 5},
		"a hole of a square metre":   {"Polygon", outer + `,` + square(106.81, -6.59, 0.000009)[1:], 1, 5},
		"a polygon of nothing":       {"MultiPolygon", `[` + square(106.8, -6.6, 0.02) + `,[],[[]],[[[106.9,-6.5],[106.9,-6.4],[106.9,-6.5],[106.9,-6.5]]]]`, 3, 5},
		"a spike that runs far":      {"Polygon", `[[[106.8,-6.6],[106.82,-6.6],[106.9,-6.5],[106.82,-6.6],[106.82,-6.58],[106.8,-6.58],[106.8,-6.6]]]`, 0, 7},
		"what is large and crosses":  {"Polygon", `[[[106.8,-6.6],[106.82,-6.58],[106.82,-6.6],[106.8,-6.58],[106.8,-6.6]]]`, -1, 0},
		"a loop of thirty metres":    {"Polygon", `[[[106.8,-6.6],[106.82,-6.6],[106.82,-6.58],[106.81,-6.58],[106.8101,-6.5801],[106.8101,-6.5799],[106.8099,-6.5801],[106.8,-6.58],[106.8,-6.6]]]`, -1, 0},
		"loops that cancel together": {"Polygon", `[[[106.8,-6.6],[106.82,-6.6],[106.82,-6.58],[106.81,-6.58],[106.811,-6.579],[106.812,-6.581],[106.812,-6.579],[106.811,-6.581],[106.8099,-6.5799],[106.8,-6.58],[106.8,-6.6]]]`, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			areas, leftOut, faults := area.Parse([]byte(collection(feature("a", tt.kind, tt.coordinates))), languages)
			if tt.leftOut < 0 {
				if len(faults) != 1 || !strings.Contains(faults[0].Detail, "crosses itself") {
					t.Errorf("faults %v, want that it crosses itself", faults)
				}
				return
			}
			if len(faults) > 0 || leftOut != tt.leftOut {
				t.Fatalf("%d are left out, faults %v; want %d and none", leftOut, faults, tt.leftOut)
			}
			if shape := areas[0].Shape; len(shape) != 1 || len(shape[0]) != 1 || len(shape[0][0]) != tt.points {
				t.Errorf("the shape is %v, want a ring of %d points", shape, tt.points)
			}
			if got := area.NewList(1, areas).At(&report.Position{Longitude: 106.805, Latitude: -6.585}); got.Code != "a" {
				t.Error("a place in it is outside")
			}
		})
	}
}

// A code of digits may be a number, as programs write it.
func TestCodeMayBeANumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{"3271010": "3271010", "7.0": "7", "0": "0"} {
		list := parsed(t, collection(strings.Replace(feature("north", "Polygon", square(0, 0, 1)), `"north"`, number, 1)))
		if got := list.InUse()[0].Code; got != want {
			t.Errorf("%s is %q, want %q", number, got, want)
		}
	}
}

// parsed reads a file that must be good.
func parsed(t *testing.T, file string) *area.List {
	t.Helper()
	areas, _, faults := area.Parse([]byte(file), languages)
	if len(faults) > 0 {
		t.Fatalf("faults: %v", faults)
	}
	return area.NewList(1, areas)
}

// A place is in the first area whose polygons have it, borders included, and not in its
// holes. Altitudes and further properties do not matter.
func TestAreaOfAPlace(t *testing.T) {
	t.Parallel()
	list := parsed(t, collection(
		feature("ring", "Polygon", strings.TrimSuffix(square(0, 0, 4), "]")+`,[[1,1],[3,1],[3,3],[1,3],[1,1]]]`),
		feature("isles", "MultiPolygon", "["+square(10, 0, 1)+","+square(12, 0, 1)+"]"),
		feature("late", "Polygon", square(3, 0, 3)),
		feature("high", "Polygon", `[[[20,0,7],[21,0,7],[21,1,7],[20,0,7]]]`),
	))
	for _, tt := range []struct {
		longitude, latitude float64
		want                string
	}{
		{0.5, 0.5, "ring"}, {2, 2, ""}, {10.5, 0.5, "isles"}, {11.5, 0.5, ""}, {12.5, 0.5, "isles"},
		{3.5, 0.5, "ring"}, {4.5, 0.5, "late"}, {0, 0, "ring"}, {4, 2, "ring"}, {20.7, 0.2, "high"}, {-1, 50, ""},
	} {
		if got := list.At(&report.Position{Latitude: tt.latitude, Longitude: tt.longitude}); got.Code != tt.want {
			t.Errorf("%g, %g is in %q, want %q", tt.longitude, tt.latitude, got.Code, tt.want)
		}
	}
	if got := list.At(nil); got.Code != "" {
		t.Errorf("no place is in %q", got.Code)
	}
}

// A map draws a small part of the file's points, and where the file says.
func TestOutlinesAreSmall(t *testing.T) {
	t.Parallel()
	var points []string
	const n = 5000
	for i := range n + 1 {
		sin, cos := math.Sincos(2 * math.Pi * float64(i%n) / n)
		points = append(points, fmt.Sprintf("[%.9f,%.9f]", 106.8+0.05*cos, -6.55+0.05*sin))
	}
	circle := `[[` + strings.Join(points, ",") + `]]`
	list := parsed(t, collection(feature("circle", "Polygon", circle), feature("dot", "Polygon", square(106.9, -6.6, 0.00002))))
	outlines := list.Outlines()
	if size := len(outlines[0]); size > len(circle)/20 {
		t.Errorf("the circle takes %d bytes of %d, want a twentieth", size, len(circle))
	}
	for i, o := range outlines {
		var shape [][][][2]float64
		if err := json.Unmarshal(o, &shape); err != nil || len(shape) != 1 || len(shape[0]) != 1 {
			t.Fatalf("outline %d is %s: %v", i, o, err)
		}
		ring := shape[0][0]
		if len(ring) < 4 || ring[0] != ring[len(ring)-1] {
			t.Errorf("the ring %v of outline %d is not a closed one", ring, i)
		}
		for _, p := range ring {
			if off := math.Abs(math.Hypot(p[0]-106.8, p[1]+6.55) - 0.05); i == 0 && off > 0.0001 {
				t.Errorf("%v is %g degrees beside the circle", p, off)
			}
		}
	}
}
