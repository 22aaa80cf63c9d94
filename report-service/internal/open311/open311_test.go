package open311_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/testing/openapitest"
	"github.com/cityconnect/cityconnect/report-service/internal/open311"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

var update = flag.Bool("update", false, "write the files in testdata again")

// document is what every answer in JSON is held to.
var document = openapitest.New("../../../docs/openapi/open311.yaml")

const key, connectionKey = "o311_KEY", "ccx_KEY"

// A city is a store without a database. It keeps what it was asked.
type city struct {
	requests []report.ServiceRequest
	updates  []report.RequestUpdate

	asked        report.RequestQuery
	askedUpdates report.UpdateQuery
	filed        []report.Filing
	idempotent   report.Idempotent
	moved        report.Move
}

func (c *city) Application(_ context.Context, hash []byte) (uuid.UUID, error) {
	if !slices.Equal(hash, report.HashKey(key)) {
		return uuid.Nil, report.ErrNoApplication
	}
	return uuid.MustParse("0198c0de-0000-7000-8000-000000000009"), nil
}

func (c *city) Requests(_ context.Context, q report.RequestQuery) ([]report.ServiceRequest, error) {
	c.asked = q
	if q.IDs == nil {
		return c.requests, nil
	}
	return slices.DeleteFunc(slices.Clone(c.requests), func(r report.ServiceRequest) bool { return !slices.Contains(q.IDs, r.ID) }), nil
}

func (c *city) Updates(_ context.Context, q report.UpdateQuery) ([]report.RequestUpdate, error) {
	c.askedUpdates = q
	return c.updates, nil
}

func (c *city) Create(_ context.Context, f *report.Filing, idempotent *report.Idempotent) (report.StoredResponse, error) {
	c.filed, c.idempotent = append(c.filed, *f), *idempotent
	return nil, nil
}

// Update knows the hole alone, which is rejected.
func (c *city) Update(_ context.Context, id uuid.UUID, m report.Move, _ [sha256.Size]byte) (version int64, err error) {
	if id != hole {
		return 0, report.ErrNotFound
	}
	c.moved = m
	f := report.Filing{Report: report.Report{ID: id, Status: report.Rejected, Version: 8}}
	entry, _, err := f.Move(m, noon)
	return entry.Version, err
}

func (c *city) Asset(_ context.Context, key string) (report.Asset, *report.Position, error) {
	if key != "lamps/L-7" {
		return report.Asset{}, nil, report.ErrNoAsset
	}
	return report.Asset{ID: 7, Key: key}, &report.Position{}, nil
}

func (c *city) List(context.Context) (report.CategoryList, error) {
	text := func(name, hint, group string) map[string]report.CategoryText {
		return map[string]report.CategoryText{"en": {Name: name, Hint: hint, Group: group}}
	}
	return report.CategoryList{Categories: []report.Category{
		{ID: 1, Accepts: true, Texts: text("Roads & potholes", "Holes, cracks and worn surfaces", "Streets")},
		{ID: 2, Accepts: true, Texts: text("Street lights", "", "")},
		{ID: 3, Accepts: false, Texts: text("Gas", "Call 112.", "")},
		{ID: 4, Accepts: true, Retired: true, Texts: text("Graffiti", "", "")},
	}}, nil
}

var (
	hole = uuid.MustParse("0198c0de-0000-7000-8000-000000000001")
	lamp = uuid.MustParse("0198c0de-0000-7000-8000-000000000002")
	noon = time.Date(2026, 11, 27, 12, 0, 0, 250_000_000, time.UTC)
)

// newCity has a report with everything that one can have, and one with as little as
// possible.
func newCity() *city {
	return &city{
		requests: []report.ServiceRequest{
			{Report: report.Report{
				ID: hole, Title: "Hole <deep> & wide", Description: "At the crossing.\x0b\nSince Monday.", Category: report.Category{ID: 1},
				Position: &report.Position{Latitude: -6.9147, Longitude: 107.6098}, Address: "Jl. Asia Afrika 8", Status: report.Rejected, Asset: report.Asset{Key: "lamps/L-7"},
				CreatedAt: noon.Add(-time.Hour), UpdatedAt: noon,
			}, Note: "Not ours.", Photos: []uuid.UUID{uuid.MustParse("0198c0de-0000-8000-8000-000000000003")}},
			{Report: report.Report{
				ID: lamp, Title: "Lampu mati 💡", Category: report.Category{ID: 4}, Status: report.InProgress,
				CreatedAt: noon.Add(-2 * time.Hour), UpdatedAt: noon.Add(-2 * time.Hour),
			}},
		},
		updates: []report.RequestUpdate{
			{ReportID: lamp, Version: 7, Status: report.InProgress, Note: "Seen", At: noon.Add(-time.Minute)},
			{ReportID: hole, Version: 8, Status: report.Rejected, Note: "Not ours.", At: noon},
		},
	}
}

// serve returns the handler of a city that is at city.example.org.
func (c *city) serve(t testing.TB) http.Handler {
	t.Helper()
	h, err := open311.New(open311.Config{
		Store: c, Filer: c, Categories: c, CityName: "Kota Bogor", Languages: []string{"en"},
		City: &report.Box{West: 107, South: -7, East: 108, North: -6}, PerKey: ratelimit.Limit{Turns: 1000, Period: time.Hour},
		Errors: service.Errors{Log: zerolog.New(io.Discard)},
		AreaAt: func(context.Context, *report.Position) (report.Area, error) { return report.Area{}, nil },
		Costly: func(ctx context.Context, _ *http.Request, work func(context.Context) error) error { return work(ctx) },
		Origin: func(*http.Request) string { return "https://city.example.org" },
		Connection: func(_ context.Context, key string) (report.User, error) {
			if key != connectionKey {
				return report.User{}, report.ErrNoConnection
			}
			return report.User{ID: "0198c0de-0000-7000-8000-00000000000a", Name: "Work orders", Scope: report.ConnectionScope("roads", false)}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return http.StripPrefix("/open311", h)
}

// ask sends a request; a form makes it a POST.
func ask(h http.Handler, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/open311"+path, nil)
	if form != nil {
		r = httptest.NewRequest(http.MethodPost, "/open311"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// form is what FixMyStreet's client sends for a report.
func form() url.Values {
	return url.Values{
		"api_key": {key}, "jurisdiction_id": {"bogor.go.id"}, "service_code": {"1"}, "lat": {"-6.91470001"}, "long": {"107.6098"},
		"email": {"kanari@surel.test"}, "first_name": {"Nama"}, "last_name": {"Kanari"}, "phone": {"+62 811 000"}, "device_id": {"kanari-7"},
		"media_url": {"https://fms.example/photo.jpeg"}, "attribute[easting]": {"529025"}, "attribute[list][]": {"a", "b"},
		"description": {"title:  A deep hole\n\ndetail: Since Monday.\n\nurl: https://fms.example/report/1\n\nSubmitted via FixMyStreet\n"},
	}
}

// updateForm is what FixMyStreet's client sends for an update.
func updateForm() url.Values {
	return url.Values{
		"api_key": {connectionKey}, "jurisdiction_id": {"bogor.go.id"}, "service_request_id": {hole.String()}, "service_request_id_ext": {"12"}, "update_id": {"41"},
		"updated_datetime": {"2026-11-27T12:00:00Z"}, "status": {"NO_FURTHER_ACTION"}, "description": {" The road is the\x07 province's.\r\n"}, "public_anonymity_required": {"TRUE"},
		"email": {"kanari@surel.test"}, "first_name": {"Nama"}, "last_name": {"Kanari"}, "phone": {"+62 811 000"}, "title": {"MS"}, "media_url": {"https://fms.example/kanari.jpeg"},
	}
}

// Each answer is the one in testdata, to the byte; those in JSON obey the document.
func TestAnswers(t *testing.T) {
	t.Parallel()
	without := func(name string) url.Values { f := form(); f.Del(name); return f }
	with := func(name, value string) url.Values { f := form(); f.Set(name, value); return f }
	says := func(name, value string) url.Values { f := updateForm(); f.Set(name, value); return f }
	const updates = "/v2/servicerequestupdates"
	for name, tt := range map[string]struct {
		path   string
		form   url.Values
		status int
	}{
		"discovery": {"/discovery", nil, 200}, "services": {"/v2/services", nil, 200},
		"definition": {"/v2/services/1", nil, 200}, "definition-unknown": {"/v2/services/99", nil, 404},
		"requests": {"/v2/requests", nil, 200}, "request": {"/v2/requests/" + hole.String(), nil, 200},
		"request-none": {"/v2/requests/" + uuid.Nil.String(), nil, 404}, "request-no-id": {"/v2/requests/x", nil, 404},
		"token": {"/v2/tokens/" + lamp.String(), nil, 200}, "updates": {"/v2/servicerequestupdates", nil, 200},
		"nothing": {"/v2/nothing", nil, 404}, "no-method": {"/v2/services", form(), 405},
		"key-missing": {"/v2/requests", without("api_key"), 403}, "key-wrong": {"/v2/requests", with("api_key", "o311_OTHER"), 403},
		"service-missing": {"/v2/requests", without("service_code"), 400}, "service-unknown": {"/v2/requests", with("service_code", "99"), 404},
		"service-signpost": {"/v2/requests", with("service_code", "3"), 400}, "service-retired": {"/v2/requests", with("service_code", "4"), 400},
		"long-missing": {"/v2/requests", without("long"), 400}, "outside": {"/v2/requests", with("lat", "52.5"), 400},
		"too-long": {"/v2/requests", with("description", strings.Repeat("ä", 4001)), 400},
		"update":   {updates, updateForm(), 200}, "update-nothing": {updates, says("description", " "), 200},
		"update-key-missing": {updates, says("api_key", ""), 403}, "update-key-of-application": {updates, says("api_key", key), 403}, "update-key-wrong": {updates, says("api_key", "ccx_OTHER"), 403},
		"update-id-missing": {updates, says("update_id", ""), 400}, "update-id-long": {updates, says("update_id", strings.Repeat("7", 201)), 400},
		"update-none": {updates, says("service_request_id", lamp.String()), 404}, "update-no-id": {updates, says("service_request_id", "7"), 404},
		"update-long": {updates, says("description", strings.Repeat("ä", 4001)), 400}, "update-status": {updates, says("status", "DONE"), 400},
		"update-illegal": {updates, says("status", "FIXED"), 400}, "update-unexplained": {updates, url.Values{
			"api_key": {connectionKey}, "service_request_id": {hole.String()}, "update_id": {"7"}, "status": {"OPEN"}}, 400},
	} {
		for _, format := range []string{"xml", "json"} {
			t.Run(name+"."+format, func(t *testing.T) {
				t.Parallel()
				path, _ := strings.CutSuffix(tt.path, "?")
				w := ask(newCity().serve(t), path+"."+format, tt.form)
				if want := map[string]string{"xml": "text/xml", "json": "application/json"}[format]; w.Code != tt.status || w.Header().Get("Content-Type") != want {
					t.Errorf("%d as %q, want %d as %q", w.Code, w.Header().Get("Content-Type"), tt.status, want)
				}
				golden(t, name+"."+format, w.Body.Bytes())
				if format == "json" {
					r := httptest.NewRequestWithContext(t.Context(), map[bool]string{true: "POST", false: "GET"}[tt.form != nil], "/open311"+path+".json", nil)
					document.Check(t, r, w.Result(), w.Body.Bytes())
				}
			})
		}
	}
}

// golden compares with a file in testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// Each query of a client reaches the store; those that nobody can ask are refused.
func TestQueries(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time { v, _ := time.Parse(time.RFC3339, s); return v.UTC() }
	for query, want := range map[string]report.RequestQuery{
		"start_date=2026-11-01T00:00:00Z": {Filter: report.Filter{FiledFrom: at("2026-11-01T00:00:00Z")}, Limit: 1000},
		"start_date=2026-11-01T00:00:00%2B07:00&end_date=2026-11-02T00:00:00+07:00": {
			Filter: report.Filter{FiledFrom: at("2026-10-31T17:00:00Z"), FiledTo: at("2026-11-01T17:00:00Z")}, Limit: 1000},
		"service_request_id=" + hole.String() + ",x&status=closed": {IDs: []uuid.UUID{hole}, Limit: 1000},
		"updated_after=2026-11-01&page=3&page_size=10":             {ChangedFrom: at("2026-11-01T00:00:00Z"), Limit: 10, Offset: 20},
		"end_date=2026-11-01T00:00:00&status=open,closed&service_code=1,x": {Filter: report.Filter{FiledTo: at("2026-11-01T00:00:00Z"), Categories: []int32{1, 0},
			Statuses: []report.Status{report.Pending, report.InProgress, report.Resolved, report.Rejected}}, Limit: 1000},
		"updated_after=2026-11-01&lat=-6.5&long=107&radius=250&q=Deep+hole": {ChangedFrom: at("2026-11-01T00:00:00Z"),
			Near: &report.Position{Latitude: -6.5, Longitude: 107}, Radius: 250, Filter: report.Filter{Words: []string{"deep", "hole"}}, Limit: 1000},
	} {
		c := newCity()
		if w := ask(c.serve(t), "/v2/requests.xml?"+query, nil); w.Code != 200 {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
		got, expected := must(json.Marshal(c.asked)), must(json.Marshal(want))
		if string(got) != string(expected) {
			t.Errorf("%s asks for\n%s, want\n%s", query, got, expected)
		}
	}
	for _, date := range []string{ // as strftime, SQL, Python, Ruby, PHP, Perl and JavaScript write it
		"2026-11-01T07:00:00%2B0700", "2026-11-01T07:00:00%2B07:00", "2026-11-01T07:00:00+0700", "2026-11-01T07:00:00+07", "2026-11-01+07:00:00%2B07",
		"2026-11-01T00:00:00Z", "2026-11-01T00:00:00z", "2026-11-01t00:00:00.000Z", "2026-11-01T00:00:00,5Z", "2026-11-01T00:00:00+UTC", "2026-11-01T00:00:00%2B0000", "2026-11-01T00:00:00-0000",
		"2026-11-01T00:00:00.123456", "2026-11-01+00:00:00", "2026-11-01T00:00", "2026-11-01T00:00Z", "20261101T000000Z", "20261101T070000%2B0700", "2026-11-01", "20261101", "+2026-11-01T00:00:00Z+",
	} {
		c := newCity()
		w := ask(c.serve(t), "/v2/requests.xml?start_date="+date, nil)
		if got := c.asked.Filter.FiledFrom; w.Code != 200 || !got.Equal(at("2026-11-01T00:00:00Z")) {
			t.Errorf("%s is %s: %d %s", date, got, w.Code, w.Body)
		}
	}
	for _, query := range []string{
		"start_date=2026-13-01", "start_date=2026-02-30T00:00:00Z", "start_date=1764547200", "start_date=2026-11-01T25:00:00Z", "start_date=01/11/2026",
		"status=done", "start_date=yesterday", "page=0", "page=x", "page_size=1001", "lat=91&long=1&radius=1", "lat=1", "long=NaN", "lat=1&long=1",
		"lat=1&long=1&radius=-1", "lat=1&long=1&radius=50001", "%zz", "service_request_id=" + strings.Repeat("x,", 1001),
	} {
		if w := ask(newCity().serve(t), "/v2/requests.xml?"+query, nil); w.Code != 400 || !strings.Contains(w.Body.String(), "<code>400</code>") {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	c := newCity()
	ask(c.serve(t), "/v2/requests.xml", nil)
	if age := time.Since(c.asked.Filter.FiledFrom); age < 90*24*time.Hour || age > 91*24*time.Hour {
		t.Errorf("without dates reports of the last %s are listed, want 90 days", age)
	}
	ask(c.serve(t), "/v2/servicerequestupdates.xml?api_key=x&start_date=2026-11-27T10:00:00Z&end_date=2026-11-27T12:00:00Z", nil)
	if q := c.askedUpdates; q.From != at("2026-11-27T10:00:00Z") || q.To != at("2026-11-27T12:00:00Z") {
		t.Errorf("updates from %s to %s", q.From, q.To)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A filed report has the place and the words, and nothing of the sender: neither the report
// nor what recognises a repetition.
func TestFiling(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change             url.Values
		title, description string
	}{
		"FixMyStreet":        {nil, "A deep hole", "Since Monday."},
		"one line":           {url.Values{"description": {" Dark\x00\x07 lamp "}}, "", ""}, // refused: a NUL
		"a control":          {url.Values{"description": {" Dark\x07 lamp\r\n"}}, "Dark lamp", ""},
		"FixMyStreet, more":  {url.Values{"description": {"title: A\n\ndetail: See\n\nurl of the shop: none\n\nurl: https://fms.example/report/1\n"}}, "A", "See\n\nurl of the shop: none"},
		"FixMyStreet, both":  {url.Values{"attribute[title]": {"Mine"}, "description": {"title: A\n\ndetail: See\n\nurl: https://fms.example/report/1"}}, "Mine", "See"},
		"a title of its own": {url.Values{"attribute[title]": {"Dark\nlamp"}, "description": {"Since Monday."}}, "Dark lamp", "Since Monday."},
		"nothing said":       {url.Values{"description": {}}, "Roads & potholes", ""},
		"a long line":        {url.Values{"description": {strings.Repeat("ab ", 60)}}, strings.TrimSpace(strings.Repeat("ab ", 40)[:119]) + "…", strings.TrimSpace(strings.Repeat("ab ", 60))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, f := newCity(), form()
			for name, values := range tt.change {
				f[name] = values
			}
			w := ask(c.serve(t), "/v2/requests.xml", f)
			if tt.title == "" {
				if w.Code != 400 || len(c.filed) > 0 {
					t.Errorf("%d %s, want it refused", w.Code, w.Body)
				}
				return
			}
			if w.Code != 200 || len(c.filed) != 1 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			got := c.filed[0]
			if got.Title != tt.title || got.Description != tt.description || got.Category.ID != 1 || got.Privacy != report.Anonymous ||
				got.Position == nil || *got.Position != (report.Position{Latitude: -6.9147, Longitude: 107.6098}) ||
				got.Reporter != (report.Reporter{}) || got.Application == uuid.Nil {
				t.Errorf("filed %+v", got)
			}
			for _, personal := range []string{"kanari", "Kanari", "Nama", "+62 811", "529025", key} {
				if kept := string(must(json.Marshal(got))) + c.idempotent.Key + string(c.idempotent.Response); strings.Contains(kept, personal) {
					t.Errorf("%q is kept in %s", personal, kept)
				}
			}
			if c.idempotent.Request != [32]byte{} {
				t.Error("a plain hash of the form is kept, which gives the sender away to who guesses")
			}
		})
	}
}

// The same form is the same request, in any order and format; another one is another.
func TestRepetitionsAreRecognised(t *testing.T) {
	t.Parallel()
	c := newCity()
	h := c.serve(t)
	file := func(path string, f url.Values) string {
		if w := ask(h, path, f); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return c.idempotent.Key
	}
	first := file("/v2/requests.xml", form())
	if again := file("/v2/requests.json", form()); again != first {
		t.Error("a repetition in JSON is another request")
	}
	for _, name := range []string{"email", "first_name", "device_id", "description"} {
		f := form()
		f.Set(name, "other")
		if file("/v2/requests.xml", f) == first {
			t.Errorf("another %s is the same request", name)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/open311/v2/requests.xml", strings.NewReader(
		"--b\r\nContent-Disposition: form-data; name=\"api_key\"\r\n\r\n"+key+"\r\n--b\r\nContent-Disposition: form-data; name=\"service_code\"\r\n\r\n2\r\n"+
			"--b\r\nContent-Disposition: form-data; name=\"address_string\"\r\n\r\nJl. Salak 1\r\n--b\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.jpg\"\r\n\r\nJPEG\r\n--b--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if last := c.filed[len(c.filed)-1]; w.Code != 200 || last.Address != "Jl. Salak 1" || last.Position != nil {
		t.Errorf("a multipart form: %d %s, %+v", w.Code, w.Body, last)
	}
}

// A client that has an answer is not sent it again.
func TestKnownAnswer(t *testing.T) {
	t.Parallel()
	h := newCity().serve(t)
	r := httptest.NewRequest(http.MethodGet, "/open311/v2/requests.xml", nil)
	r.Header.Set("If-None-Match", ask(h, "/v2/requests.xml", nil).Header().Get("ETag"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusNotModified || w.Body.Len() > 0 || w.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// Each status of Open311 makes one of a report, or leaves it as it is, and those that the
// city sends come back as they went. Nothing but status and words reaches the store.
func TestStatusesOfUpdates(t *testing.T) {
	t.Parallel()
	const p, w, fixed, no = report.Pending, report.InProgress, report.Resolved, report.Rejected
	for status, want := range map[string]map[report.Status]report.Status{ // empty for a refusal
		"OPEN": {p: p, w: w, fixed: w, no: p}, "CONFIRMED": {p: p, w: w, fixed: w, no: p}, "REOPEN": {p: p, w: w, fixed: w, no: p},
		"IN_PROGRESS": {p: w, w: w, fixed: w, no: ""}, "action_scheduled": {p: w, w: w, fixed: w, no: ""},
		"PLANNED": {p: w, w: w, fixed: w, no: ""}, " investigating ": {p: w, w: w, fixed: w, no: ""},
		"CLOSED": {p: fixed, w: fixed, fixed: fixed, no: no}, "FIXED": {p: fixed, w: fixed, fixed: fixed, no: ""},
		"NO_FURTHER_ACTION": {p: no, w: no, fixed: "", no: no}, "NOT_COUNCILS_RESPONSIBILITY": {p: no, w: no, fixed: "", no: no},
		"DUPLICATE": {p: no, w: no, fixed: "", no: no}, "UNABLE_TO_FIX": {p: no, w: no, fixed: "", no: no},
		"INTERNAL_REFERRAL": {p: p, w: w, fixed: fixed, no: no},
	} {
		c, f := newCity(), updateForm()
		f.Set("status", status)
		answer := ask(c.serve(t), "/v2/servicerequestupdates.xml", f)
		if c.moved.To == "" {
			t.Fatalf("%s: %d %s", status, answer.Code, answer.Body)
		}
		for from, to := range want {
			filing := report.Filing{Report: report.Report{Status: from, Version: 1}}
			entry, _, err := filing.Move(c.moved, noon)
			if entry.To != to || err == nil && entry.IsReply() != (from == to) {
				t.Errorf("%s makes a report that is %s %q (%v), want %q", status, from, entry.To, err, to)
			}
		}
		if kept := string(must(json.Marshal(c.moved))); strings.TrimSpace(c.moved.Note) != "The road is the province's." || strings.Contains(kept, "anari") || strings.Contains(kept, "Nama") || strings.Contains(kept, "fms.example") {
			t.Errorf("the store gets %s", kept)
		}
	}
	for _, status := range []report.Status{p, w, fixed, no} {
		c, f := newCity(), updateForm()
		c.updates = []report.RequestUpdate{{Status: status}}
		var listed element
		if err := xml.Unmarshal(ask(c.serve(t), "/v2/servicerequestupdates.xml", nil).Body.Bytes(), &listed); err != nil {
			t.Fatal(err)
		}
		f.Set("status", listed.at("request_update", "status"))
		if ask(c.serve(t), "/v2/servicerequestupdates.xml", f); c.moved.To != status {
			t.Errorf("%s goes out as %s, and comes back as %s", status, f.Get("status"), c.moved.To)
		}
	}
}

// Whatever is in a query or a form, the answer is one of Open311, and never a failure of
// ours.
func FuzzParameters(f *testing.F) {
	for _, seed := range []string{
		"", "status=open&start_date=2026-11-27T00:00:00Z", "lat=1e400&long=-0", "lat=NaN&long=Inf&radius=1", "q=%00%ff%F0%9F", "page=9223372036854775807",
		"start_date=0000-01-01T00:00:00Z&end_date=9999-12-31T23:59:59-23:59", "service_request_id=,,,", "service_code=-1,99999999999999999999", "a=b;c=d", "%", "&&&===",
		"description=%00", "description=\xff", "service_code=1&lat=-6.5&long=107.5&description=x&api_key=" + key, "attribute[title]=%E2%80%AE%20&attribute[]=x",
		"service_code=2&address_string=%0a%0b&api_key=" + key, "api_key=" + key, "api_key=" + connectionKey + "&update_id=1&status=FIXED&description=%00&service_request_id=" + hole.String(), "page=1000&page_size=1000", "q=..", "updated_after=2026-11-27 07:00",
	} {
		f.Add(seed)
	}
	h := newCity().serve(f)
	f.Fuzz(func(t *testing.T, query string) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, path := range []string{"/v2/requests.xml", "/v2/servicerequestupdates.json"} {
				r := httptest.NewRequest(method, "/open311"+path, strings.NewReader(query))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.URL.RawQuery = query
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code >= 500 || w.Header().Get("Content-Type") == "application/problem+json" {
					t.Errorf("%s %s %q: %d %s", method, path, query, w.Code, w.Body)
				}
				if strings.HasSuffix(path, "xml") {
					if err := xml.Unmarshal(w.Body.Bytes(), new(struct{})); err != nil {
						t.Errorf("%q: %v in %s", query, err, w.Body)
					}
				} else if !json.Valid(w.Body.Bytes()) {
					t.Errorf("%q: %s", query, w.Body)
				}
			}
		}
	})
}

// A list of 1,000 requests, from the store's answer to the last byte of XML.
func BenchmarkRequestsXML(b *testing.B) {
	c := newCity()
	c.requests = slices.Repeat(c.requests, 500)
	h := c.serve(b)
	for b.Loop() {
		if w := ask(h, "/v2/requests.xml", nil); w.Code != 200 {
			b.Fatal(w.Code)
		}
	}
}
