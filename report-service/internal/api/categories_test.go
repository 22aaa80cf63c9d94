package api_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A city begins with eleven categories, each with a name and a hint in both languages.
func TestCategoriesInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for header, want := range map[string]struct{ language, lamps string }{
		"":                        {"en", "Street lights and signals"},
		"de, fr;q=0.8":            {"en", "Street lights and signals"},
		"id-ID,id;q=0.9,en;q=0.8": {"id", "Lampu jalan dan lampu lalu lintas"},
	} {
		list, a := ok[reportapi.CategoryList](s, call{method: "GET", path: "/categories", headers: map[string]string{"Accept-Language": header}}, http.StatusOK)
		if got := a.Header.Get("Content-Language"); got != want.language || a.Header.Get("Vary") != "Accept-Language" {
			t.Errorf("%q: Content-Language %q, want %q", header, got, want.language)
		}
		if len(list.Categories) != 11 || list.Categories[1].Name != want.lamps || list.Categories[1].Icon != "lamp" {
			t.Errorf("%q: categories %+v, want 11 with %s", header, list.Categories, want.lamps)
		}
		for _, c := range list.Categories {
			if c.Name == "" || c.Hint == "" || !c.AcceptsReports {
				t.Errorf("%q: category %+v lacks a name or a hint", header, c)
			}
		}
		again := s.do(call{method: "GET", path: "/categories", headers: map[string]string{"Accept-Language": header, "If-None-Match": a.Header.Get("ETag")}})
		if again.StatusCode != http.StatusNotModified || len(again.body) != 0 {
			t.Errorf("%q: status %d for what the caller has, want 304", header, again.StatusCode)
		}
	}
}

// setCategories replaces the list as an operator does, and returns the answer.
func (s *testServer) setCategories(ifMatch, body string) answer {
	s.t.Helper()
	return s.do(call{method: "PUT", path: "/reports/categories", token: token(s.t, "pavel", auth.Operator), body: body,
		headers: map[string]string{"If-Match": ifMatch}})
}

// two is a list of a category that was there and of a new one.
const two = `{"categories":[
	{"texts":[{"language":"en","name":"Gas smell","hint":"Call 112.","group":"Danger"},{"language":"id","name":"Bau gas","hint":"Hubungi 112."}],"accepts_reports":false},
	{"id":2,"icon":"lamp","texts":[{"language":"en","name":"Lamps"},{"language":"id","name":"Lampu"}]}]}`

// The operator's list replaces the city's: names change in every list, a category that
// is left out stays with its reports, and a signpost takes none.
func TestCityHasItsOwnCategories(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, pavel := token(t, "ann", auth.Resident), token(t, "pavel", auth.Operator)
	lamp, hole := s.fileAbout(ann, 2, "a lamp"), s.fileAbout(ann, 1, "a hole")
	_, before := ok[reportapi.CategorySettings](s, call{method: "GET", path: "/reports/categories", token: pavel}, http.StatusOK)

	a := s.setCategories(before.Header.Get("ETag"), two)
	if a.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	if stale := s.setCategories(before.Header.Get("ETag"), two); stale.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("the list of before: status %d, want 412: %s", stale.StatusCode, stale.body)
	}
	list, _ := ok[reportapi.CategoryList](s, call{method: "GET", path: "/categories"}, http.StatusOK)
	if got := fmt.Sprintf("%+v", list.Categories); len(list.Categories) != 2 || list.Categories[0].ID != 12 || list.Categories[0].Group != "Danger" || list.Categories[1].Name != "Lamps" {
		t.Errorf("categories %s", got)
	}
	all, _ := ok[reportapi.CategoryList](s, call{method: "GET", path: "/categories?include=retired"}, http.StatusOK)
	if len(all.Categories) != 12 || !all.Categories[2].Retired {
		t.Errorf("with retired ones: %+v, want 12", all.Categories)
	}
	for id, want := range map[string]string{lamp.String(): "Lamps", hole.String(): "Roads and potholes"} {
		if rep, _ := ok[reportapi.Report](s, call{method: "GET", path: "/reports/" + id}, http.StatusOK); rep.CategoryName != want {
			t.Errorf("a report has the category %q, want %q", rep.CategoryName, want)
		}
	}
	file := func(category int, language string) answer {
		return s.do(call{method: "POST", path: "/reports", token: ann, headers: map[string]string{"Accept-Language": language},
			body: strings.Replace(newReport, `"category_id":2`, fmt.Sprintf(`"category_id":%d`, category), 1)})
	}
	if a := file(1, "en"); a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), "still in use") {
		t.Errorf("a retired category: %d %s", a.StatusCode, a.body)
	}
	if a := file(12, "id"); a.StatusCode != http.StatusConflict || !strings.Contains(string(a.body), "Hubungi 112.") {
		t.Errorf("a signpost: %d %s, want its hint", a.StatusCode, a.body)
	}
	// An official corrects nothing into them, but leaves a report in the one it has.
	correct := func(category int) answer {
		return s.do(call{method: "PATCH", path: "/reports/" + hole.String(), token: token(t, "olga", auth.Official), headers: map[string]string{"If-Match": "*"},
			body: fmt.Sprintf(`{"category_id":%d,"address":"Jl. Braga 1","reason":"There"}`, category)})
	}
	for category, want := range map[int]int{3: http.StatusBadRequest, 12: http.StatusConflict, 1: http.StatusOK} {
		if a := correct(category); a.StatusCode != want {
			t.Errorf("corrected into category %d: status %d, want %d: %s", category, a.StatusCode, want, a.body)
		}
	}
	changes, _ := ok[reportapi.CategoryChanges](s, call{method: "GET", path: "/reports/categories/changes", token: pavel}, http.StatusOK)
	if len(changes.Changes) != 1 || changes.Changes[0].Actor != "pavel" || changes.Changes[0].Added != 1 || changes.Changes[0].Changed != 1 || changes.Changes[0].Retired != 10 {
		t.Errorf("changes %+v, want one by pavel: 1 added, 1 changed, 10 retired", changes.Changes)
	}
	// A report that was accepted is answered as before, whatever became of its category.
	keyed := call{method: "POST", path: "/reports", token: ann, body: newReport, headers: map[string]string{"Idempotency-Key": "twice"}}
	first, _ := ok[reportapi.Report](s, keyed, http.StatusCreated)
	s.setCategories("*", strings.Replace(two, `"id":2`, `"id":3`, 1))
	if again, _ := ok[reportapi.Report](s, keyed, http.StatusCreated); again.ID != first.ID {
		t.Errorf("the repetition answers with report %s, want %s", again.ID, first.ID)
	}
	keyed.headers = map[string]string{"Idempotency-Key": "other"}
	if a := s.do(keyed); a.StatusCode != http.StatusBadRequest {
		t.Errorf("a new key with a retired category: status %d, want 400: %s", a.StatusCode, a.body)
	}
	// A category that comes back is in use again.
	if a := s.setCategories("*", strings.Replace(two, `"id":2`, `"id":1`, 1)); a.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	if a := file(1, "en"); a.StatusCode != http.StatusCreated {
		t.Errorf("a category that came back: %d %s", a.StatusCode, a.body)
	}
}

func TestCategoriesAreChecked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for body, want := range map[string]string{
		`{"categories":[]}`: "must have at least 1 element",
		`{"categories":[{"texts":[{"language":"en","name":"Lamps"}]}]}`:                             "id is missing",
		strings.Replace(two, "Lampu", "Bau gas", 1):                                                 "another category has in the language id",
		strings.Replace(two, `"id":2`, `"id":99`, 1):                                                "there is no such category",
		strings.Replace(two, `"language":"id","name":"Lampu"`, `"language":"en","name":"Lampu"`, 1): "is already used by another text",
		strings.Replace(two, `"icon":"lamp"`, `"accepts_reports":false`, 1):                         "must have a category that accepts reports",
		strings.Replace(two, `"name":"Lamps"`, `"name":" "`, 1):                                     "/categories/1/texts/0/name",
	} {
		if a := s.setCategories("*", body); a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: status %d: %s, want 400 with %q", body, a.StatusCode, a.body, want)
		}
	}
	if a := s.do(call{method: "PUT", path: "/reports/categories", token: token(t, "pavel", auth.Operator), body: two}); a.StatusCode != http.StatusBadRequest {
		t.Errorf("without If-Match: status %d, want 400", a.StatusCode)
	}
	if a := s.do(call{method: "PUT", path: "/reports/categories", token: token(t, "olga", auth.Official), body: two, headers: map[string]string{"If-Match": "*"}}); a.StatusCode != http.StatusForbidden {
		t.Errorf("an official replaces the list: status %d, want 403", a.StatusCode)
	}
}

// Every replica serves a new list within two seconds, and what lists reports has the
// new name at once: the queue, the public lists, the export and the preview.
func TestEveryReplicaAndListHasTheNewName(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	other := newReplica(t, s.database, rules)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	lamp := s.fileAbout(ann, 2, "a lamp")
	categories := func(s *testServer) []reportapi.Category {
		list, _ := ok[reportapi.CategoryList](s, call{method: "GET", path: "/categories"}, http.StatusOK)
		return list.Categories
	}
	if before := categories(other); before[1].Name != "Street lights and signals" {
		t.Fatalf("categories %+v", before)
	}
	if a := s.setCategories("*", two); a.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	replaced := time.Now()
	if here := categories(s); here[1].Name != "Lamps" {
		t.Errorf("the replica itself: %+v, want the new list at once", here)
	}
	eventually.True(t, "the other replica has the list", func() bool { return categories(other)[1].Name == "Lamps" })
	if took := time.Since(replaced); took > 2*time.Second {
		t.Errorf("the other replica took %s, want 2 s at most", took)
	}
	for _, c := range []call{
		{method: "GET", path: "/reports"}, {method: "GET", path: "/reports/" + lamp.String()}, {method: "GET", path: "/reports/mine", token: ann},
		{method: "GET", path: "/reports/queue", token: olga}, {method: "GET", path: "/reports/export", token: olga},
	} {
		if a := other.do(c); a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), "Lamps") || strings.Contains(string(a.body), "Street lights") {
			t.Errorf("%s: %d %s, want the new name alone", c.path, a.StatusCode, a.body)
		}
	}
	for language, want := range map[string]string{"en": "Lamps", "id": "Lampu"} {
		if html := other.html("/reports/" + lamp.String() + "/preview?lang=" + language); !strings.Contains(html, want+" ·") {
			t.Errorf("preview in %s: %s, want %s", language, html, want)
		}
	}
	// One that was retired is still a filter, and counted.
	s.setCategories("*", strings.Replace(two, `"id":2`, `"id":3`, 1))
	if got := s.queue(olga, "category=2"); len(got) != 1 {
		t.Errorf("the queue of a retired category has %v, want the report", got)
	}
	if list, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports?category=2"}, http.StatusOK); len(list.Reports) != 1 {
		t.Errorf("the list of a retired category has %d reports, want 1", len(list.Reports))
	}
}

// The list in docs/city.md is accepted as it stands, by a city that begins.
func TestManualsCategories(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	manual, err := os.ReadFile("../../../docs/city.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)<<'END'\n(.*?)\n +END\n`).FindSubmatch(manual)
	if block == nil {
		t.Fatal("docs/city.md has no list of categories")
	}
	_, before := ok[reportapi.CategorySettings](s, call{method: "GET", path: "/reports/categories", token: token(t, "pavel", auth.Operator)}, http.StatusOK)
	if tag := before.Header.Get("ETag"); tag != `"1"` {
		t.Errorf("a new city's list has the revision %s, the manual says \"1\"", tag)
	}
	if a := s.setCategories(`"1"`, string(block[1])); a.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	for language, want := range map[string]string{"id": "Hubungi 112 sekarang.", "en": "Call 112 now."} {
		list, _ := ok[reportapi.CategoryList](s, call{method: "GET", path: "/categories", headers: map[string]string{"Accept-Language": language}}, http.StatusOK)
		if len(list.Categories) != 9 || list.Categories[0].Hint != want || list.Categories[0].AcceptsReports {
			t.Errorf("in %s: %+v, want nine that begin with a signpost", language, list.Categories)
		}
	}
}

// html returns an answer that the document's checks cannot read.
func (s *testServer) html(path string) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}

// Where the reader's language, and the city's first one, have no texts, another one of the
// city's has.
func TestNextLanguageOfTheCity(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Languages = []string{"su", "id"} })
	for _, accepted := range []string{"su", "en", ""} {
		list, _ := ok[reportapi.CategoryList](s, call{method: "GET", path: "/categories", headers: map[string]string{"Accept-Language": accepted}}, http.StatusOK)
		if got := list.Categories[1].Name; got != "Lampu jalan dan lampu lalu lintas" {
			t.Errorf("for %q: %q, want the Indonesian name", accepted, got)
		}
	}
}

// A city that begins to use another language goes on with the texts of its first one
// until it has written others.
func TestLanguageWithoutTexts(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Languages = []string{"en", "id", "nl"} })
	list, a := ok[reportapi.CategoryList](s, call{method: "GET", path: "/categories", headers: map[string]string{"Accept-Language": "nl"}}, http.StatusOK)
	if a.Header.Get("Content-Language") != "nl" || list.Categories[1].Name != "Street lights and signals" {
		t.Errorf("in Dutch: %+v, want the English texts", list.Categories[1])
	}
	if a := s.setCategories("*", two); a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), "/categories/0/texts") || !strings.Contains(string(a.body), "nl is missing") {
		t.Errorf("a list without Dutch: %d %s, want 400 with the field and the language", a.StatusCode, a.body)
	}
}
