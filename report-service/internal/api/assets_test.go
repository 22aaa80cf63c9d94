package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

const lamps = "code,lat,lng,name\nL-1,-6.91,107.61,Lamp at the bridge\nL-2,-6.9101,107.6101,Lamp at the school\nL-3,-6.95,107.7,Lamp at the mill\n"

// setAssets replaces a layer as an operator does.
func (s *testServer) setAssets(layer, file string) reportapi.AssetUpload {
	s.t.Helper()
	up, _ := ok[reportapi.AssetUpload](s, putAssets(s.t, layer, file), http.StatusOK)
	return up
}

func putAssets(t testing.TB, layer, file string) call {
	kind := "text/csv"
	if strings.HasPrefix(file, "{") {
		kind = "application/geo+json"
	}
	return call{method: "PUT", path: "/reports/assets/" + layer + "?category=2", token: token(t, "oskar", auth.Operator),
		body: file, headers: map[string]string{"Content-Type": kind}}
}

// A file replaces the things of a layer, and changes only what differs. Reports keep what
// was removed; nothing new can be filed on it.
func TestAssets(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	if up := s.setAssets("lamps", lamps); up.Added != 3 || up.Count != 3 || up.CategoryID != 2 {
		t.Errorf("the first file: %+v", up)
	}
	file := func(asset string) (reportapi.Report, answer) {
		a := s.do(call{method: "POST", path: "/reports", token: ann, body: `{"title": "Dark", "description": "", "category_id": 2, "privacy_level": "anonymous", "asset": "` + asset + `"}`})
		var rep reportapi.Report
		_ = json.Unmarshal(a.body, &rep) // a problem is none
		return rep, a
	}
	dark, _ := file("lamps/L-2")
	if dark.Asset != "lamps/L-2" || dark.AssetName != "Lamp at the school" || dark.Latitude == nil || *dark.Latitude != -6.9101 {
		t.Errorf("a report on a lamp: %+v", dark)
	}
	near := func(query string) []reportapi.Asset {
		list, _ := ok[reportapi.AssetList](s, call{method: "GET", path: "/map/assets?" + query}, http.StatusOK)
		return list.Assets
	}
	box := near("bbox=107.6,-6.92,107.62,-6.9")
	if len(box) != 2 || box[0].Asset != "lamps/L-1" || box[0].Report != nil || box[1].Report == nil || box[1].Report.ID != dark.ID {
		t.Errorf("in a box: %+v", box)
	}
	up := s.setAssets("lamps", strings.NewReplacer("-6.91,", "-6.9102,").Replace(lamps))
	if up.Added != 0 || up.Changed != 1 || up.Removed != 0 {
		t.Errorf("one lamp moved: %+v", up)
	}
	if up := s.setAssets("lamps", "code,lat,lng\nL-1,-6.9102,107.61\n"); up.Changed != 1 || up.Removed != 2 {
		t.Errorf("two lamps removed: %+v", up)
	}
	if one := near("asset=lamps/L-2"); len(one) != 0 {
		t.Errorf("a removed lamp: %+v", one)
	}
	if _, a := file("lamps/L-2"); a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), `"/asset"`) {
		t.Errorf("a report on a removed lamp: %d %s", a.StatusCode, a.body)
	}
	for path, tok := range map[string]string{"/reports": "", "/reports/mine": ann} {
		page, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: path + "?asset=lamps/L-2", token: tok}, http.StatusOK)
		if len(page.Reports) != 1 || page.Reports[0].Asset != "lamps/L-2" {
			t.Errorf("%s of a removed lamp: %+v", path, page.Reports)
		}
	}
	queue, _ := ok[reportapi.TaskPage](s, call{method: "GET", path: "/reports/queue?asset=lamps/L-1", token: olga}, http.StatusOK)
	if len(queue.Reports) != 0 {
		t.Errorf("the queue of a lamp without reports: %+v", queue.Reports)
	}
	if up := s.setAssets("lamps", "code,lat,lng\n"); up.Count != 0 || up.Removed != 1 {
		t.Errorf("an empty file: %+v", up)
	}
	layers, _ := ok[reportapi.AssetLayers](s, call{method: "GET", path: "/reports/assets", token: olga}, http.StatusOK)
	if len(layers.Layers) != 0 {
		t.Errorf("layers without things: %+v", layers.Layers)
	}
	if up := s.setAssets("lamps", `{"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": {"type": "Point", "coordinates": [107.61, -6.91]}, "properties": {"code": 7, "name": null}}]}`); up.Added != 1 {
		t.Errorf("GeoJSON: %+v", up)
	}
	audit, _ := ok[reportapi.SettingsAudit](s, call{method: "GET", path: "/admin/reports/settings/audit", token: token(t, "oskar", auth.Operator)}, http.StatusOK)
	if len(audit.Acts) != 5 || audit.Acts[0].Setting != "assets" || audit.Acts[0].Actor != "oskar" {
		t.Errorf("the audit: %+v", audit.Acts)
	}
}

// A thing shows nothing of reports that the public must not see: private, hidden and
// closed ones, and duplicates.
func TestAssetsShowPublicReports(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.setAssets("lamps", lamps)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	file := func(more string) reportapi.Report {
		rep, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann,
			body: `{"title": "Dark", "description": "", "category_id": 2, "privacy_level": "public", "asset": "lamps/L-1"` + more + `}`}, http.StatusCreated)
		return rep
	}
	before := s.do(call{method: "GET", path: "/map/assets?asset=lamps/L-1"})
	file(`, "visibility": "officials"`)
	hidden := file("")
	s.do(call{method: "PUT", path: "/reports/" + hidden.ID.String() + "/hidden", token: olga, body: `{"reason": "spam"}`})
	closed := file("")
	s.do(call{method: "PATCH", path: "/reports/" + closed.ID.String() + "/status", token: olga, body: `{"status": "rejected", "note": "No."}`})
	if after := s.do(call{method: "GET", path: "/map/assets?asset=lamps/L-1"}); string(after.body) != string(before.body) {
		t.Errorf("%s, want %s", after.body, before.body)
	}
	first, second := file(""), file("")
	ok[reportapi.Work](s, call{method: "PUT", path: "/reports/" + first.ID.String() + "/duplicate-of", token: olga, body: `{"original": "` + second.ID.String() + `"}`}, http.StatusOK)
	list, _ := ok[reportapi.AssetList](s, call{method: "GET", path: "/map/assets?asset=lamps/L-1"}, http.StatusOK)
	if got := list.Assets[0].Report; got == nil || got.ID != second.ID {
		t.Errorf("already reported: %+v, want the original", got)
	}
}

// The thing of a report is corrected by its reporter and by officials, and its place with it.
func TestCorrectAsset(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.setAssets("lamps", lamps)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	rep, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann, body: `{"title": "Dark", "description": "", "category_id": 2, "privacy_level": "public"}`}, http.StatusCreated)
	path := "/reports/" + rep.ID.String()
	rep, _ = ok[reportapi.Report](s, call{method: "PATCH", path: path, token: ann, body: `{"asset": "lamps/L-1"}`}, http.StatusOK)
	if rep.Asset != "lamps/L-1" || rep.Latitude == nil || *rep.Latitude != -6.91 {
		t.Errorf("corrected by its reporter: %+v", rep)
	}
	ok[reportapi.Report](s, call{method: "PATCH", path: path, token: olga, body: `{"asset": "lamps/L-2", "reason": "The other one."}`}, http.StatusOK)
	rep, _ = ok[reportapi.Report](s, call{method: "PATCH", path: path, token: olga, body: `{"asset": "", "reason": "None."}`}, http.StatusOK)
	if rep.Asset != "" || *rep.Latitude != -6.9101 {
		t.Errorf("taken away: %+v", rep)
	}
	history, _ := ok[reportapi.History](s, call{method: "GET", path: path + "/history"}, http.StatusOK)
	if h := history.History; len(h) != 4 || !h[1].Correction.Place || h[1].Correction.Asset != nil ||
		*h[2].Correction.Asset != (reportapi.AssetReplaced{From: "lamps/L-1", To: "lamps/L-2"}) || h[3].Correction.Asset.To != "" {
		t.Errorf("the history: %+v", h)
	}
}

// In an area with a signpost a category takes no reports: the list says so before anything is
// written, and the API afterwards. Elsewhere all is as it was.
func TestSignpostsInAnArea(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Open311On = true })
	ann, oskar := token(t, "ann", auth.Resident), token(t, "oskar", auth.Operator)
	s.setAreas("*", borders)
	before := s.do(call{method: "GET", path: "/reports/categories", token: oskar})
	var settings struct {
		Categories []map[string]any `json:"categories"`
	}
	if err := json.Unmarshal(before.body, &settings); err != nil {
		t.Fatal(err)
	}
	put := func(signposts string, status int) {
		t.Helper()
		for _, c := range settings.Categories {
			delete(c, "retired")
			delete(c, "signposts")
		}
		if err := json.Unmarshal([]byte(signposts), new(any)); err != nil {
			t.Fatal(err)
		}
		settings.Categories[0]["signposts"] = json.RawMessage(signposts)
		body, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		a := s.do(call{method: "PUT", path: "/reports/categories", token: oskar, body: string(body), headers: map[string]string{"If-Match": "*"}})
		if a.StatusCode != status {
			t.Errorf("%s: %d %s", signposts, a.StatusCode, a.body)
		}
	}
	texts := `"texts": [{"language": "en", "text": "Ask the port.", "link": "https://port.example/"}, {"language": "id", "text": "Tanya pelabuhan."}]`
	for _, bad := range []string{
		`[{"area": "nowhere", ` + texts + `}]`, `[{"area": "west", ` + texts + `}, {"area": "west", ` + texts + `}]`,
		`[{"area": "west", "texts": [{"language": "id", "text": "Tanya pelabuhan."}]}]`, `[{` + strings.ReplaceAll(texts, "https:", "javascript:") + `}]`,
	} {
		put(bad, http.StatusBadRequest)
	}
	put(`[{"area": "west", `+texts+`}]`, http.StatusOK)
	const west, east = "latitude=-6.9&longitude=106.5", "latitude=-6.9&longitude=107.5"
	for query, want := range map[string]bool{"": true, "?" + west: false, "?" + east: true} {
		list, _ := ok[reportapi.CategoryList](s, call{method: "GET", path: "/categories" + query}, http.StatusOK)
		if c := list.Categories[0]; c.AcceptsReports != want || !want && (c.Hint != "Ask the port." || c.Link != "https://port.example/") {
			t.Errorf("categories%s: %+v", query, c)
		}
	}
	s.do(call{method: "GET", path: "/categories?latitude=1"})
	id := int32(settings.Categories[0]["id"].(float64))
	for place, want := range map[string]int{
		`"latitude": -6.9, "longitude": 106.5`: http.StatusConflict, `"latitude": -6.9, "longitude": 107.5`: http.StatusCreated, `"address": "Jl. Braga 1"`: http.StatusCreated,
	} {
		a := s.do(call{method: "POST", path: "/reports", token: ann, body: fmt.Sprintf(`{"title": "Dark", "description": "", "category_id": %d, "privacy_level": "public", %s}`, id, place)})
		if a.StatusCode != want || want == http.StatusConflict && !strings.Contains(string(a.body), "Ask the port. https://port.example/") {
			t.Errorf("%s: %d %s", place, a.StatusCode, a.body)
		}
	}
	delete(settings.Categories[0], "signposts") // as programs from before send it
	body, _ := json.Marshal(settings)
	s.do(call{method: "PUT", path: "/reports/categories", token: oskar, body: string(body), headers: map[string]string{"If-Match": "*"}})
	again, _ := ok[reportapi.CategorySettings](s, call{method: "GET", path: "/reports/categories", token: oskar}, http.StatusOK)
	if got := again.Categories[0].Signposts; len(got) != 1 || got[0].Area != "west" || got[0].Texts[0].Link != "https://port.example/" {
		t.Errorf("the settings: %+v", got)
	}
}

// The queue names the older report that another is probably a duplicate of; one request merges
// them, after which it is named no more.
func TestPerhapsOf(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	file := func(title, more string) reportapi.Report {
		rep, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann, body: `{"title": "` + title +
			`", "description": "", "category_id": 2, "latitude": -6.9, "longitude": 107.6, "privacy_level": "anonymous"` + more + `}`}, http.StatusCreated)
		return rep
	}
	secret := file("Lamp is dark", `, "visibility": "officials"`) // it would tell its duplicates' reporters how it ends
	first, again, other := file("Lamp is dark", ""), file("The lamp is dark again", ""), file("Hole in the road", "")
	perhaps := func() map[string]string {
		page, _ := ok[reportapi.TaskPage](s, call{method: "GET", path: "/reports/queue", token: olga}, http.StatusOK)
		found := make(map[string]string)
		for _, r := range page.Reports {
			if r.PerhapsOf != nil {
				found[r.ID.String()] = r.PerhapsOf.ID.String()
			}
		}
		return found
	}
	if got := perhaps(); len(got) != 1 || got[again.ID.String()] != first.ID.String() {
		t.Errorf("%v, want %s of %s, and nothing of %s or %s", got, again.ID, first.ID, secret.ID, other.ID)
	}
	work, _ := ok[reportapi.Work](s, call{method: "PUT", path: "/reports/" + again.ID.String() + "/duplicate-of", token: olga, body: `{"original": "` + first.ID.String() + `"}`}, http.StatusOK)
	if got := perhaps(); len(got) != 0 || work.Report.PerhapsOf != nil {
		t.Errorf("once merged: %v, %+v", got, work.Report.PerhapsOf)
	}
}

// The codes of a layer are printed page by page.
func TestSheets(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := "code,lat,lng\n"
	for i := range 13 {
		file += fmt.Sprintf("L-%02d,-6.9,107.6\n", i)
	}
	s.setAssets("lamps", file)
	print := func(query string) answer {
		return s.do(call{method: "GET", path: "/reports/assets/lamps/sheet" + query, token: token(t, "oskar", auth.Operator)})
	}
	first := print("")
	if next := first.Header.Get("Link"); strings.Count(string(first.body), "<path") != 12 || next != `</reports/assets/lamps/sheet?after=L-11>; rel="next"` {
		t.Errorf("the first sheet has %d codes, and leads to %s", strings.Count(string(first.body), "<path"), next)
	}
	for query, want := range map[string]int{"?after=L-11": 1, "?code=L-00&code=L-12&code=L-99": 2, "?after=L-12": 0, "?code=none": 0} {
		if a := print(query); strings.Count(string(a.body), "<path") != want || a.Header.Get("Link") != "" || (a.StatusCode == http.StatusNotFound) != (want == 0) {
			t.Errorf("%s: %d %s", query, a.StatusCode, a.body)
		}
	}
}
