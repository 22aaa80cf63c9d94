package asset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/asset"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

var bogor = &report.Box{West: 106.7, South: -6.7, East: 106.9, North: -6.4}

// Every fault of a file is named by its record and its kind, and nothing of the file is
// returned with one.
func TestFaultsAreAllNamed(t *testing.T) {
	t.Parallel()
	feature := func(geometry, properties string) string {
		return `{"type":"Feature","geometry":` + geometry + `,"properties":` + properties + `}`
	}
	const here = `{"type":"Point","coordinates":[106.8,-6.6]}`
	code := func(n int) string { return fmt.Sprintf(`{"code":"L-%d"}`, n) }
	faulty := []struct{ record, code string }{
		{feature(`{"type":"Polygon","coordinates":[[[106.8,-6.6],[106.81,-6.6],[106.8,-6.61]]]}`, code(1)), "geometry"}, // a ring that is not closed
		{feature(`{"type":"LineString","coordinates":[[106.8,-6.6],[106.81,-6.6]]}`, code(2)), "geometry"},
		{feature(`null`, code(3)), "geometry"},
		{feature(`{"type":"Point"}`, code(4)), "position"},
		{feature(`{"type":"Point","coordinates":[106.8]}`, code(5)), "position"},
		{feature(`{"type":"Point","coordinates":["106.8","-6.6"]}`, code(6)), "position"},
		{feature(`{"type":"Point","coordinates":[-6.6,106.8]}`, code(7)), "swapped"},
		{feature(`{"type":"Point","coordinates":[13.4,52.5]}`, code(8)), "outside"},
		{feature(`{"type":"Point","coordinates":[529025,179000]}`, code(9)), "position"}, // metres of another system
		{feature(here, code(0)), "code-twice"},
		{feature(here, `{}`), "code"},
		{feature(here, `{"code":""}`), "code"},
		{feature(here, `{"code":1.5}`), "code"},
		{feature(here, `{"code":"L 7"}`), "code"},
		{feature(here, "{\"code\":\"\ufeffL-7\"}"), "code"}, // a byte order mark of a file that was put in between
		{feature(here, `{"code":"L-10","name":""}`), "name"},
		{feature(here, `{"code":"L-11","name":" "}`), "name"},
		{feature(here, `{"code":"L-12","name":"`+strings.Repeat("n", 121)+`"}`), "name"},
		{feature(here, `{"code":"L-13","name":7}`), "record"},
		{feature(here, "{\"code\":\"L-14\",\"name\":\"Stra\xdfe\"}"), "encoding"},
		{`{"type":"Point","coordinates":[106.8,-6.6]}`, "record"},
		{`[]`, "record"},
		{`null`, "record"},
	}
	var file strings.Builder
	file.WriteString("\ufeff" + `{"name":"lamps","type":"FeatureCollection","features":[` + feature(here, code(0)))
	want := make([]string, 0, len(faulty)+1)
	for i, f := range faulty {
		file.WriteString(",\n" + f.record)
		want = append(want, fmt.Sprintf("record %d %s", i+2, f.code))
	}
	file.WriteString(`,{"type":"Feature","geometry":{"type":"Poi`) // half a record
	check(t, file.String(), false, append(want, fmt.Sprintf("record %d cut", len(faulty)+2)))

	rows := []struct{ row, code string }{
		{"L-1,-6.6", "cut"}, {"L-2,-6.6,106.8,Lamp,5", "cut"}, {"L-3,106.8,-6.6,Lamp", "swapped"}, {"L-4,52.5,13.4,Lamp", "outside"},
		{"L-5,north,106.8,Lamp", "position"}, {"L-6,NaN,106.8,Lamp", "position"}, {"L-7,1e400,106.8,Lamp", "position"}, {`L-8,"-6,6",106.8,Lamp`, "position"},
		{"L-0,-6.6,106.8,Lamp", "code-twice"}, {",-6.6,106.8,Lamp", "code"}, {"\ufeffL-9,-6.6,106.8,Lamp", "code"}, {"L-10,-6.6,106.8,", "name"},
		{"L-11,-6.6,106.8,Stra\xdfe", "encoding"}, {"L-12,-6.6,106.8,\"a\x00b\"", "name"}, {"L/13,-6.6,106.8,Lamp", "code"}, {"L-14", "cut"},
	}
	table := "code,lat,lng,name\r\nL-0,-6.6,106.8,Lamp\r\n"
	want = nil
	for i, r := range rows {
		table += r.row + "\r\n"
		want = append(want, fmt.Sprintf("record %d %s", i+2, r.code))
	}
	check(t, table, true, want)
}

// check compares the faults of a file with the records and codes of want.
func check(t *testing.T, file string, isCSV bool, want []string) {
	t.Helper()
	things, faults, err := asset.Read(strings.NewReader(file), isCSV, bogor)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults {
		name, _, _ := strings.Cut(f.Detail, ":")
		name, _, _ = strings.Cut(name, " (")
		got = append(got, name+" "+f.Code)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d things and the faults\n%s\nwant\n%s", len(things), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A file of something else has one fault, which names it as a whole.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"": "collection", "{": "collection", "[]": "collection", `{"type":"Topology"}`: "collection", `{"type":"FeatureCollection"}`: "collection",
		`{"type":7,"features":[]}`: "collection", `{"type":"FeatureCollection","features":{}}`: "collection", "\xff\xfe{\x00": "collection",
	} {
		if _, faults, err := asset.Read(strings.NewReader(file), false, nil); err != nil || len(faults) != 1 || faults[0].Code != want {
			t.Errorf("%q: %v, %v", file, faults, err)
		}
	}
	for _, file := range []string{"", "id,name\n", "code;lat;lng\n", "code,lng,lat\n"} {
		if _, faults, err := asset.Read(strings.NewReader(file), true, nil); err != nil || len(faults) != 1 || faults[0].Code != "columns" {
			t.Errorf("%q: %v, %v", file, faults, err)
		}
	}
	many := "code,lat,lng\n" + strings.Repeat("x,1,1\n", asset.MaxAssets+1)
	if _, faults, _ := asset.Read(strings.NewReader(many), true, nil); len(faults) != 100 {
		t.Errorf("%d faults are listed, want 100", len(faults))
	}
}

// Whatever a file is, it is read or its faults are named.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"", "{", lampsJSON, "code,lat,lng\nL-1,-6.6,106.8\n", "code,lat,lng,name\n\"", `{"features":[1,{"type":"Feature"}],"type":"FeatureCollection"}`} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, file string, isCSV bool) {
		things, faults, err := asset.Read(strings.NewReader(file), isCSV, bogor)
		if err != nil {
			t.Fatalf("%q: %v", file, err)
		}
		for _, thing := range things {
			if len(faults) == 0 && (thing.Code == "" || !bogor.Contains(thing.Position)) {
				t.Errorf("%q: %+v", file, thing)
			}
		}
	})
}

const lampsJSON = `{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[106.8,-6.6]},"properties":{"code":"L-1"}}]}`
