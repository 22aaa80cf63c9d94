package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// resolve has an official resolve a report.
func (s *testServer) resolve(path string) {
	s.t.Helper()
	ok[reportapi.Report](s, call{method: "PATCH", path: path + "/status", token: token(s.t, "olga", auth.Official), body: `{"status":"resolved"}`}, http.StatusOK)
}

// Reporters alone say whether their resolved report is fixed, and officials alone decide on
// it, and read what else they said.
func TestVerdict(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, ben, olga := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident), token(t, "olga", auth.Official)
	path := "/reports/" + s.file(ann, "anonymous").ID.String()
	not := call{method: "PUT", path: path + "/verdict", token: ann, body: `{"fixed":false,"text":" Dark again "}`}
	if a := s.do(not); a.StatusCode != http.StatusConflict || !strings.Contains(string(a.body), "#no-verdict") {
		t.Errorf("of a pending report: %d %s", a.StatusCode, a.body)
	}
	s.resolve(path)
	for who, want := range map[string]int{"": http.StatusUnauthorized, ben: http.StatusNotFound, olga: http.StatusNotFound} {
		c := not
		c.token = who
		if a := s.do(c); a.StatusCode != want {
			t.Errorf("%d, want %d: %s", a.StatusCode, want, a.body)
		}
	}
	given, _ := ok[reportapi.Verdict](s, not, http.StatusOK)
	again, _ := ok[reportapi.Verdict](s, not, http.StatusOK)
	if given != again || given.Fixed || given.Text != "Dark again" || !given.Until.After(time.Now()) {
		t.Errorf("answered %+v, then %+v", given, again)
	}
	for _, list := range []string{path, "/reports/mine"} {
		a := s.do(call{method: "GET", path: list, token: ann})
		if !strings.Contains(string(a.body), `"verdict":{"asked":true,"fixed":false,"text":"Dark again","until":`) {
			t.Errorf("the reporter reads %s", a.body)
		}
	}
	for _, reader := range []string{ann, olga} {
		items := s.dialogue(path, reader).Items
		if len(items) != 1 || items[0].Kind != reportapi.DialogueItemKindVerdict || *items[0].Fixed || items[0].Text != "Dark again" || items[0].DuplicateID != nil || items[0].By.ID != "" {
			t.Errorf("the dialogue has %+v", items)
		}
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	if !work.Report.Disputed || work.Verdict == nil || *work.Verdict != given {
		t.Errorf("officials read %+v", work)
	}
	other := s.file(ann, "public")
	if got := s.queue(olga, "disputed=true"); len(got) != 1 {
		t.Errorf("disputed reports: %q", got)
	}
	if a := s.do(call{method: "GET", path: "/reports/export?disputed=true", token: olga}); strings.Count(string(a.body), "\n") != 2 {
		t.Errorf("exported as disputed: %s", a.body)
	}
	counts, _ := ok[reportapi.QueueCounts](s, call{method: "GET", path: "/reports/queue/counts?category=" + "2", token: olga}, http.StatusOK)
	waiting, _ := ok[reportapi.QueueWaiting](s, call{method: "GET", path: "/reports/queue/waiting", token: olga}, http.StatusOK)
	numbers, _ := ok[reportapi.Numbers](s, call{method: "GET", path: "/reports/numbers", token: olga}, http.StatusOK)
	if counts.Disputed != 1 || counts.Total != 2 || waiting.Disputed != 1 || len(numbers.Numbers) != 1 || numbers.Numbers[0].Disputed != 1 || numbers.Departments[0].Disputed != 1 {
		t.Errorf("counted %+v, %+v and %+v", counts, waiting, numbers)
	}

	keep := call{method: "POST", path: path + "/verdict/decision", token: ben, body: `{"note":"Lit at our visit"}`}
	if a := s.do(keep); a.StatusCode != http.StatusForbidden {
		t.Errorf("a resident decides: %d", a.StatusCode)
	}
	keep.token = olga
	if work, _ = ok[reportapi.Work](s, keep, http.StatusOK); work.Report.Disputed {
		t.Error("it is still disputed")
	}
	for path, problem := range map[string]string{keep.path: "#not-disputed", "/reports/" + other.ID.String() + "/verdict/decision": "#not-disputed"} {
		keep.path = path
		if a := s.do(keep); a.StatusCode != http.StatusConflict || !strings.Contains(string(a.body), problem) {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	if a := s.do(not); a.StatusCode != http.StatusConflict {
		t.Errorf("after the decision: %d %s", a.StatusCode, a.body)
	}
	history, _ := ok[reportapi.History](s, call{method: "GET", path: path + "/history"}, http.StatusOK)
	if n := len(history.History); n != 4 || history.History[2].Kind != "disputed" || history.History[3].Kind != "kept" || history.History[3].Note != "Lit at our visit" {
		t.Errorf("the history is %+v", history)
	}
}

// Nobody but the reporter and officials is answered the words of a verdict, by any operation,
// and of the officials' ones only those of the report itself have them.
func TestVerdictWordsStayPrivate(t *testing.T) {
	t.Parallel()
	const words = "kenari-kuning-di-jendela"
	s := newServer(t)
	ann, bob := token(t, "ann", auth.Resident), token(t, "bob", auth.Resident)
	olga := token(t, "olga", auth.Official)
	var paths []string
	for _, privacy := range []string{"anonymous", "public"} {
		path := "/reports/" + s.file(ann, privacy).ID.String()
		s.resolve(path)
		ok[reportapi.Verdict](s, call{method: "PUT", path: path + "/verdict", token: ann, body: `{"fixed":false,"text":"` + words + `"}`}, http.StatusOK)
		paths = append(paths, path)
	}
	for who, reader := range map[string]string{"nobody": "", "a resident": bob, "an official": olga, "an operator": token(t, "otto", auth.Operator)} {
		for _, path := range paths {
			for _, c := range append(everything(path), officials(path)...) {
				c.token = reader
				a := s.do(c)
				has, work := strings.Contains(string(a.body), words), strings.HasSuffix(c.path, "/work") || strings.HasSuffix(c.path, "/dialogue")
				if who == "an official" && work != has && !strings.HasSuffix(c.path, "/decision") || who != "an official" && has {
					t.Errorf("%s: %s %s has the words: %t\n%s", who, c.method, c.path, has, a.body)
				}
				for name, values := range a.Header {
					if strings.Contains(strings.Join(values, " "), words) {
						t.Errorf("%s: %s of %s %s has the words", who, name, c.method, c.path)
					}
				}
			}
		}
	}
	if strings.Contains(s.logs.String(), words) {
		t.Error("the log has the words")
	}
	tracked := &tracker{s: s, secrets: []string{words}}
	tracked.lookIntoTables("verdicts")
}

// Officials add photos of the finished work, which all answers tell from others, and without
// one nothing is resolved where the city asks for it, by itself or with others.
func TestPhotoOfTheFinishedWork(t *testing.T) {
	t.Parallel()
	_, set := withFiles(t)
	s := newReplica(t, pgtest.Report(t).Config().ConnString(), postgres.Rules{Resolutions: report.Resolutions{NeedPhoto: true}}, set)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	id := s.file(ann, "anonymous").ID
	path := "/reports/" + id.String()
	move := call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"resolved"}`}
	if a := s.do(move); a.StatusCode != http.StatusConflict || !strings.Contains(string(a.body), "#photo-needed") {
		t.Errorf("without a photo: %d %s", a.StatusCode, a.body)
	}
	bulk := call{method: "POST", path: "/reports/moves", token: olga, body: `{"status":"resolved","reports":[{"id":"` + id.String() + `"}]}`}
	if moved, _ := ok[reportapi.BulkMoved](s, bulk, http.StatusOK); moved.Results[0].Moved || moved.Results[0].Problem != "photo-needed" {
		t.Errorf("with others: %+v", moved)
	}
	for _, tt := range []struct {
		who, query string
		status     int
	}{
		{ann, "?purpose=after", http.StatusForbidden}, {olga, "?purpose=before", http.StatusBadRequest}, {ann, "", http.StatusAccepted}, {olga, "?purpose=after", http.StatusAccepted},
	} {
		if a := s.do(put(photoPath(id, uuid.New())+tt.query, tt.who, "picture")); a.StatusCode != tt.status {
			t.Errorf("%q: %d, want %d: %s", tt.query, a.StatusCode, tt.status, a.body)
		}
	}
	list, _ := ok[reportapi.PhotoList](s, call{method: "GET", path: path + "/photos", token: ann}, http.StatusOK)
	if len(list.Photos) != 2 || list.Photos[0].Purpose != "" || list.Photos[1].Purpose != reportapi.After {
		t.Errorf("the photos are %+v", list.Photos)
	}
	ok[reportapi.Report](s, move, http.StatusOK)
}

// officials are requests for what only officials read of a report.
func officials(path string) []call {
	return []call{
		{method: "GET", path: path + "/work"},
		{method: "GET", path: path + "/dialogue"},
		{method: "GET", path: path + "/outlook"},
		{method: "GET", path: path + "/photos"},
		{method: "GET", path: "/reports/queue?disputed=true"},
		{method: "GET", path: "/reports/queue/counts"},
		{method: "GET", path: "/reports/queue/waiting"},
		{method: "GET", path: "/reports/export"},
		{method: "GET", path: "/reports/numbers"},
		{method: "GET", path: "/map/points?bbox=107,-7,108,-6&zoom=12"},
		{method: "PUT", path: path + "/verdict", body: `{"fixed":true}`},
		{method: "POST", path: path + "/verdict/decision", body: `{"note":"Lit"}`},
	}
}
