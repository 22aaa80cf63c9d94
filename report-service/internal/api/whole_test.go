package api_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// samples are the values of a new report that a test cannot make up by the field's type.
var samples = map[string]any{
	"category_id": 2, "latitude": -6.91471, "longitude": 107.60981, "privacy_level": "public", "visibility": "public", "asset": "lamps/L-7",
}

// notOfThis are fields that the report of TestReportIsWhole does not show, with the reason.
var notOfThis = map[string]string{
	"source":        "a resident files it: TestFilingForSomebody",
	"area":          "the city has none: TestCityHasAreas",
	"hidden_reason": "it is not hidden: TestHiddenReportIsGone",
	"withdrawn_at":  "it is not withdrawn: TestWithdrawReport",
	"question":      "nobody asked: TestDialogue",
	"verdict":       "it is not resolved: TestVerdict",
	"my_vote":       "reporters do not vote for their own: TestFromFilingToSolution",
}

// A place is where a report has to be whole.
type place struct {
	name, file string
	body       string
	columns    bool              // it is a table in CSV
	names      map[string]string // of fields that have another name there
	without    map[string]string // fields that are not there, with the reason
}

const (
	followsFromStatus = "it follows from the status"
	ofTheReader       = "it is about the reader"
	forEverybody      = "it has only what everybody sees"
)

// A field that the document has is stored, read, shown, exported and in the reporter's own
// data, or it stands here with the reason. CONTRIBUTING.md, "Add a field to a report", has
// the places.
func TestReportIsWhole(t *testing.T) { //nolint:funlen // every place where a report is shown, one after the other
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	s.setAssets("lamps", "code,lat,lng,name\nL-7,-6.91471,107.60981,Lamp 7\n")
	filed, fields := make(map[string]any), fieldsOf[reportapi.Report]()
	for name, kind := range fieldsOf[reportapi.NewReport]() {
		fields[name] = kind
		if notOfThis[name] != "" {
			continue
		}
		value := samples[name]
		if value == nil && kind.Kind() == reflect.String {
			value = "the " + name + " of this report"
		}
		if value == nil {
			t.Errorf("%s of NewReport has no sample here", name)
			continue
		}
		filed[name] = value
	}
	body, err := json.Marshal(filed)
	if err != nil {
		t.Fatal(err)
	}
	rep, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann, body: string(body)}, http.StatusCreated)
	get := func(path, token string) string {
		a := s.do(call{method: "GET", path: path, token: token})
		if a.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %d %s", path, a.StatusCode, a.body)
		}
		return string(a.body)
	}
	var row string
	if err := s.pool.QueryRow(t.Context(), `select to_jsonb(r)::text from reports r where id = $1`, rep.ID).Scan(&row); err != nil {
		t.Fatal(err)
	}
	for _, p := range []place{
		{name: "the table reports", file: "report-service/internal/postgres/columns.go and a migration", body: row, without: map[string]string{
			"category_name": "the category has it", "asset": "assets has it", "asset_name": "assets has it", "reporter_name": "reporters has it", "photos": "photos has them",
			"mine": ofTheReader, "closed": followsFromStatus, "transitions": followsFromStatus,
		}},
		{name: "GET /reports/{id}", file: "report-service/internal/api/views.go, reportOf", body: get("/reports/"+rep.ID.String(), ann)},
		{name: "GET /reports/queue", file: "report-service/internal/api/views.go, taskOf", body: get("/reports/queue", olga), without: map[string]string{
			"description": "officials open the report for it", "reporter_name": "their work needs no name", "mine": ofTheReader, "closed": followsFromStatus,
		}},
		{name: "GET /reports/export", file: "report-service/internal/api/export.go", body: get("/reports/export", olga), columns: true,
			names: map[string]string{"category_name": "category"}, without: map[string]string{
				"description": "officials open the report for it", "privacy_level": "it says something about the reporter", "reporter_name": "exports have no reporters",
				"version": "only programs need it", "asset_name": "asset names it", "photos": "a table has no pictures", "mine": ofTheReader, "closed": followsFromStatus, "transitions": followsFromStatus,
			}},
		{name: "GET /open-data/reports.csv", file: "report-service/internal/api/opendata.go", body: get("/open-data/reports.csv", ""), columns: true,
			names: map[string]string{"category_name": "category"}, without: map[string]string{
				"privacy_level": forEverybody, "visibility": forEverybody, "reporter_name": "open data have no reporters",
				"version": "only programs need it", "asset_name": "asset names it", "photos": "a table has no pictures", "mine": ofTheReader, "closed": followsFromStatus, "transitions": followsFromStatus,
			}},
		{name: "GET /open-data/reports.geojson", file: "report-service/internal/api/opendata.go", body: get("/open-data/reports.geojson", ""),
			names: map[string]string{"category_name": "category"}, without: map[string]string{
				"latitude": "the geometry has it", "longitude": "the geometry has it",
				"privacy_level": forEverybody, "visibility": forEverybody, "reporter_name": "open data have no reporters",
				"version": "only programs need it", "asset_name": "asset names it", "photos": "the report's page has them", "mine": ofTheReader, "closed": followsFromStatus, "transitions": followsFromStatus,
			}},
		{name: "GET /open311/v2/requests.json", file: "report-service/internal/postgres/open311.go and report-service/internal/open311/requests.go",
			body: get("/open311/v2/requests.json", ""), names: map[string]string{
				"id": "service_request_id", "title": "description", "description": "description", "category_id": "service_code", "category_name": "service_name",
				"latitude": "lat", "longitude": "long", "created_at": "requested_datetime", "updated_at": "updated_datetime", "photos": "media_url",
			}, without: map[string]string{
				"privacy_level": forEverybody, "visibility": forEverybody, "reporter_name": "Open311 has no reporters", "score": "Open311 has no votes",
				"version": "Open311 has none", "asset_name": "asset names it", "mine": ofTheReader, "closed": followsFromStatus, "transitions": followsFromStatus,
			}},
		{name: "GET /reports/mine/data", file: "report-service/internal/postgres/columns.go", body: get("/reports/mine/data", ann),
			names: map[string]string{"category_name": "category"}, without: map[string]string{
				"mine": ofTheReader, "closed": followsFromStatus, "transitions": followsFromStatus,
			}},
	} {
		for name := range fields {
			if notOfThis[name] == "" && p.without[name] == "" && !p.has(name, filed[name]) {
				t.Errorf("%s is not in %s: add it in %s", name, p.name, p.file)
			}
		}
	}

	view, err := postgres.NewReports(s.db).Get(t.Context(), rep.ID, report.User{ID: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := map[string]string{
		"Area": notOfThis["area"], "HiddenReason": notOfThis["hidden_reason"], "WithdrawnAt": notOfThis["withdrawn_at"], "Score": "nobody voted",
	}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[report.Report]()) {
		if reflect.ValueOf(view.Report).Field(i).IsZero() && elsewhere[f.Name] == "" {
			t.Errorf("%s of report.Report is not read: add it to columns in report-service/internal/postgres/columns.go", f.Name)
		}
	}
}

// has reports whether the place has the field of that name, with its value if one was filed.
func (p place) has(name string, value any) bool {
	there := name
	if other := p.names[name]; other != "" {
		there = other
	}
	if p.columns {
		lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(p.body, "\uFEFF"))).ReadAll()
		if err != nil || len(lines) != 2 {
			return false
		}
		for i, column := range lines[0] {
			if column == there {
				return value == nil || lines[1][i] == fmt.Sprint(value)
			}
		}
		return false
	}
	if value == nil || p.names[name] != "" {
		return strings.Contains(p.body, `"`+there+`":`) && (value == nil || strings.Contains(p.body, fmt.Sprint(value)))
	}
	text, _ := json.Marshal(value)
	found, _ := regexp.MatchString(`"`+there+`":\s*`+regexp.QuoteMeta(string(text)), p.body)
	return found
}

// fieldsOf returns the types of T's fields by their names in JSON.
func fieldsOf[T any]() map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = f.Type
	}
	return fields
}
