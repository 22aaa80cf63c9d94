package api_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
)

// fileWords files a report whose title, description and address have a word that
// is found wherever they are shown.
func (s *testServer) fileWords(token, word, privacy string) uuid.UUID {
	s.t.Helper()
	body := strings.NewReplacer("Dark lamp", "Dark "+word, "at the crossing", "at "+word, "Jl. Asia Afrika 8", "Jl. "+word, "public", privacy).Replace(newReport)
	rep, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: token, body: body,
		headers: map[string]string{"Idempotency-Key": "key-of-" + word}}, http.StatusCreated)
	return rep.ID
}

func (s *testServer) hide(token string, id uuid.UUID, reason string) reportapi.Work {
	s.t.Helper()
	work, _ := ok[reportapi.Work](s, call{method: "PUT", path: "/reports/" + id.String() + "/hidden", token: token, body: `{"reason":"` + reason + `"}`}, http.StatusOK)
	return work
}

// asks is a request to each operation that may show a report, with its photo.
func asks(id, photo uuid.UUID) []call {
	path := "/reports/" + id.String()
	return append(everything(path),
		call{method: "GET", path: path + "/preview"},
		call{method: "GET", path: path + "/photos"},
		call{method: "GET", path: "/photos/" + photo.String() + "/320.jpg"},
		call{method: "PUT", path: path + "/photos/" + uuid.NewString(), body: "picture", headers: map[string]string{"Content-Type": "image/jpeg"}},
		call{method: "PUT", path: path + "/photos/" + uuid.NewString() + "?purpose=after", body: "picture", headers: map[string]string{"Content-Type": "image/jpeg"}},
		call{method: "GET", path: "/reports?q=Zebra"},
		call{method: "GET", path: "/reports?status=pending&category=2"},
		call{method: "GET", path: "/reports?order=oldest&bbox=107,-7,108,-6"},
		call{method: "GET", path: "/map/points?bbox=107,-7,108,-6&zoom=18"},
		call{method: "GET", path: "/map/points?bbox=107,-7,108,-6&zoom=18&q=Zebra"},
		call{method: "POST", path: path + "/abuse", body: `{"reason":"spam"}`},
	)
}

// lists is a request to each operation that shows officials reports, unless they
// ask for what is hidden.
func lists() []call {
	return []call{
		{method: "GET", path: "/reports"},
		{method: "GET", path: "/reports/queue"},
		{method: "GET", path: "/reports/queue?q=Zebra"},
		{method: "GET", path: "/reports/export"},
		{method: "GET", path: "/map/points?bbox=107,-7,108,-6&zoom=18"},
	}
}

// showPicture adds a photo to a report of token, and returns its id once everybody
// sees it.
func (s *testServer) showPicture(dir, token string, id uuid.UUID) uuid.UUID {
	s.t.Helper()
	photo, _ := ok[reportapi.Photo](s, put(photoPath(id, uuid.New()), token, "picture"), http.StatusAccepted)
	name := filepath.Join(dir, picture.Key(photo.ID, 320))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("Zebra's picture"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.pool.Exec(s.t.Context(), `update photos set state = 'ready'`); err != nil {
		s.t.Fatal(err)
	}
	return photo.ID
}

// wantGone makes sure that nobody but officials and its reporter, not ben either, can tell
// a report with its photo from one that never was.
func (s *testServer) wantGone(id, photo uuid.UUID, ben string) {
	s.t.Helper()
	never := uuid.New()
	for who, reader := range map[string]string{"nobody": "", "ben": ben, "an operator": token(s.t, "otto", auth.Operator)} {
		others := asks(never, uuid.New())
		for i, c := range asks(id, photo) {
			c.token, others[i].token = reader, reader
			a, b := s.do(c), s.do(others[i])
			if bytes.Contains(a.body, []byte("Zebra")) || bytes.Contains(a.body, []byte(id.String())) && !strings.Contains(c.path, "/admin/outbox") {
				s.t.Errorf("%s: %s %s tells of the report: %s", who, c.method, c.path, a.body)
			}
			if a.StatusCode != b.StatusCode {
				s.t.Errorf("%s: %s %s: status %d, of a report that never was %d", who, c.method, c.path, a.StatusCode, b.StatusCode)
			}
		}
	}
}

// A report that only the city sees is gone from the first moment, or from when officials
// restricted it, as a hidden one is. Its reporter and officials see it as any other, with
// who sees it.
func TestPrivateReportIsGone(t *testing.T) {
	t.Parallel()
	for _, filed := range []string{"officials", "public"} {
		t.Run(filed, func(t *testing.T) {
			t.Parallel()
			dir, set := withFiles(t)
			s := newServer(t, set)
			ann, ben, olga := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident), token(t, "olga", auth.Official)
			id := s.fileWords(ann, "Zebra", `anonymous","visibility":"`+filed)
			path := "/reports/" + id.String()
			turn := func(visibility string, status int) {
				t.Helper()
				if a := s.do(call{method: "PUT", path: path + "/visibility", token: olga, body: `{"visibility":"` + visibility + `","reason":" A name "}`}); a.StatusCode != status {
					t.Errorf("turned to %s: %d %s, want %d", visibility, a.StatusCode, a.body, status)
				}
			}
			if filed == "public" {
				turn("officials", http.StatusOK)
				turn("public", http.StatusOK)
				ok[reportapi.Report](s, call{method: "GET", path: path}, http.StatusOK)
				work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
				if len(work.Acts) == 0 || work.Acts[0].Text != "A name" {
					t.Errorf("acts %+v, want the reason of the first", work.Acts)
				}
			}
			turn("officials", http.StatusOK)
			photo := s.showPicture(dir, ann, id)
			s.wantGone(id, photo, ben)
			turn("public", http.StatusConflict)
			s.wantGone(id, photo, ben)

			for _, c := range lists()[1:4] { // those of officials alone
				c.token = olga
				if a := s.do(c); a.StatusCode != http.StatusOK || !bytes.Contains(a.body, []byte("Zebra")) || !bytes.Contains(a.body, []byte("officials")) {
					t.Errorf("an official: %s %s: status %d without the report: %s", c.method, c.path, a.StatusCode, a.body)
				}
			}
			counts, _ := ok[reportapi.QueueCounts](s, call{method: "GET", path: "/reports/queue/counts", token: olga}, http.StatusOK)
			numbers, _ := ok[reportapi.Numbers](s, call{method: "GET", path: "/reports/numbers?interval=day", token: olga}, http.StatusOK)
			if counts.Total != 1 || len(numbers.Numbers) != 1 || len(s.queue(olga, "hidden=true")) != 0 {
				t.Errorf("%d are counted, %d numbers have it, and %q are hidden; want 1, 1 and none", counts.Total, len(numbers.Numbers), s.queue(olga, "hidden=true"))
			}
			moved, _ := ok[reportapi.Report](s, call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"in_progress","note":"We come"}`}, http.StatusOK)
			mine, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports/mine", token: ann}, http.StatusOK)
			own, _ := ok[reportapi.Report](s, call{method: "GET", path: path, token: ann}, http.StatusOK)
			for _, r := range append(mine.Reports, own, moved) {
				if r.Visibility != reportapi.VisibilityOfficials || r.HiddenReason != "" || r.Status != "in_progress" {
					t.Errorf("answered %+v, want it as one that only the city sees", r)
				}
			}
			if a := s.do(call{method: "GET", path: "/photos/" + photo.String() + "/320.jpg", token: ann}); a.StatusCode != http.StatusOK || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("the reporter is answered %d, and caches may keep it: %q", a.StatusCode, a.Header.Get("Cache-Control"))
			}
			for _, reader := range []string{ann, olga} {
				ok[reportapi.History](s, call{method: "GET", path: path + "/history", token: reader}, http.StatusOK)
				ok[reportapi.PhotoList](s, call{method: "GET", path: path + "/photos", token: reader}, http.StatusOK)
			}
			s.wantGone(id, photo, ben)
		})
	}
}

// A hidden report is gone from every answer to everybody but officials and its
// reporter, who sees the reason. For others it does not exist. Shown again, it
// is as before.
func TestHiddenReportIsGone(t *testing.T) {
	t.Parallel()
	dir, set := withFiles(t)
	s := newServer(t, set)
	ann, ben, olga := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident), token(t, "olga", auth.Official)
	id := s.fileWords(ann, "Zebra", "anonymous")
	path, photo := "/reports/"+id.String(), s.showPicture(dir, ann, id)
	if a := s.do(call{method: "GET", path: "/photos/" + photo.String() + "/320.jpg"}); !bytes.Contains(a.body, []byte("Zebra")) {
		t.Fatalf("before it is hidden the picture is %s; is this test looking at all?", a.body)
	}

	work := s.hide(olga, id, "Names a neighbour")
	if work.Report.HiddenReason != "Names a neighbour" || work.Report.Version != 2 {
		t.Errorf("hidden: reason %q at version %d, want the reason at 2", work.Report.HiddenReason, work.Report.Version)
	}
	s.wantGone(id, photo, ben)
	for _, c := range lists() {
		c.token = olga
		if a := s.do(c); a.StatusCode != http.StatusOK || bytes.Contains(a.body, []byte("Zebra")) {
			t.Errorf("an official: %s %s: status %d with the hidden report: %s", c.method, c.path, a.StatusCode, a.body)
		}
	}
	if got := s.queue(olga, "hidden=true"); len(got) != 1 || got[0] != "Dark Zebra" {
		t.Errorf("the queue of what is hidden has %q", got)
	}
	counts, _ := ok[reportapi.QueueCounts](s, call{method: "GET", path: "/reports/queue/counts", token: olga}, http.StatusOK)
	hidden, _ := ok[reportapi.QueueCounts](s, call{method: "GET", path: "/reports/queue/counts?hidden=true", token: olga}, http.StatusOK)
	if counts.Total != 0 || hidden.Total != 1 {
		t.Errorf("%d reports and %d hidden ones are counted, want 0 and 1", counts.Total, hidden.Total)
	}
	if numbers, a := ok[reportapi.Numbers](s, call{method: "GET", path: "/reports/numbers?interval=day", token: olga}, http.StatusOK); len(numbers.Numbers) != 0 {
		t.Errorf("the numbers have it: %s", a.body)
	}
	if a := s.do(call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"in_progress"}`}); a.StatusCode != http.StatusConflict {
		t.Errorf("a hidden report is moved: %d %s", a.StatusCode, a.body)
	}

	mine, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports/mine", token: ann}, http.StatusOK)
	own, a := ok[reportapi.Report](s, call{method: "GET", path: path, token: ann}, http.StatusOK)
	if len(mine.Reports) != 1 || mine.Reports[0].HiddenReason != "Names a neighbour" || own.HiddenReason != "Names a neighbour" {
		t.Errorf("the reporter is answered %+v and %s, want the reason in both", mine, a.body)
	}
	if bytes.Contains(a.body, []byte("olga")) {
		t.Errorf("the reporter learns who hid it: %s", a.body)
	}
	if a := s.do(call{method: "GET", path: "/photos/" + photo.String() + "/320.jpg", token: ann}); a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("caches may keep a picture of a hidden report: %q", a.Header.Get("Cache-Control"))
	}
	for _, reader := range []string{ann, olga} {
		ok[reportapi.History](s, call{method: "GET", path: path + "/history", token: reader}, http.StatusOK)
		ok[reportapi.PhotoList](s, call{method: "GET", path: path + "/photos", token: reader}, http.StatusOK)
	}

	s.hide(olga, id, "Another reason") // it is hidden already
	shown, _ := ok[reportapi.Work](s, call{method: "DELETE", path: path + "/hidden", token: olga}, http.StatusOK)
	if shown.Report.HiddenReason != "" || shown.Report.Version != 3 {
		t.Errorf("shown again: reason %q at version %d, want none at 3", shown.Report.HiddenReason, shown.Report.Version)
	}
	if got, _ := ok[reportapi.Report](s, call{method: "GET", path: path}, http.StatusOK); got.Title != "Dark Zebra" {
		t.Errorf("shown again it is %q", got.Title)
	}
	var acts []string
	for _, act := range shown.Acts {
		acts = append(acts, string(act.Action)+" "+act.By.ID+" "+act.Text)
	}
	if got := strings.Join(acts, ", "); got != "hide olga Names a neighbour, unhide olga Names a neighbour" {
		t.Errorf("the acts are %s", got)
	}
}

// Redacted words are gone: from all answers, from all tables except for
// messages that were written before, and from the answer to a repeated request.
func TestRedactedWordsAreGone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	id := s.fileWords(ann, "Zebra", "public")
	path := "/reports/" + id.String()
	ok[reportapi.Report](s, call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"rejected","note":"Zebra did it"}`}, http.StatusOK)

	redact := func(body string, status int) answer {
		t.Helper()
		a := s.do(call{method: "PATCH", path: path + "/words", token: olga, body: body})
		if a.StatusCode != status {
			t.Fatalf("redact %s: %d %s, want %d", body, a.StatusCode, a.body, status)
		}
		return a
	}
	for _, wrong := range []string{
		`{"reason":"x"}`, `{"title":"x"}`, `{"title":" ","reason":"x"}`, `{"reason":" ","title":"x"}`,
		`{"notes":[{"version":1,"note":"x"}],"reason":"x"}`, `{"notes":[{"version":2,"note":""},{"version":2,"note":""}],"reason":"x"}`,
	} {
		redact(wrong, http.StatusBadRequest)
	}
	if a := s.do(call{method: "PATCH", path: path + "/words", token: olga, body: `{"title":"x","reason":"x"}`, headers: map[string]string{"If-Match": `"1"`}}); a.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("at another version: %d %s", a.StatusCode, a.body)
	}
	redact(`{"title":"Dark [name]","description":"at [name]","notes":[{"version":2,"note":"[name] did it"}],"reason":"a name"}`, http.StatusOK)
	if _, err := s.pool.Exec(t.Context(), `update reports set address = ''`); err != nil { // a place is not a word that is redacted
		t.Fatal(err)
	}

	tracked := &tracker{s: s, secrets: []string{"Zebra"}}
	for _, c := range append(everything(path), lists()...) {
		if c.method == "GET" {
			c.token = olga
			tracked.look(c.path, s.do(c).body)
		}
	}
	body := strings.NewReplacer("Dark lamp", "Dark Zebra", "at the crossing", "at Zebra", "Jl. Asia Afrika 8", "Jl. Zebra").Replace(newReport)
	again, a := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann, body: body, headers: map[string]string{"Idempotency-Key": "key-of-Zebra"}}, http.StatusCreated)
	if again.ID != id || again.Title != "Dark [name]" || again.Description != "at [name]" {
		t.Errorf("the repetition is answered %s", a.body)
	}
	for _, table := range []string{"reports", "status_history", "report_acts", "duplicate_ends"} {
		tracked.look(table, []byte(strings.Join(tracked.column(`select t::text from `+table+` t`), "\n")))
	}
	history, _ := ok[reportapi.History](s, call{method: "GET", path: path + "/history"}, http.StatusOK)
	if got := history.History[1].Note; got != "[name] did it" {
		t.Errorf("the note is %q", got)
	}
	var message string
	if err := s.pool.QueryRow(t.Context(), `select payload::text from outbox_messages where routing_key = 'report.moderated'`).Scan(&message); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"redacted_notes": [2]`, `"action": "redacted"`, `"hidden": false`, `"report_version": 3`, `"report_title": "Dark [name]"`} {
		if !strings.Contains(message, want) {
			t.Errorf("the message is %s, without %s", message, want)
		}
	}
}

// A user can complain about each report once, and somebody without an account once in
// the same words. Officials see the complaint but not its author, and nobody else sees
// anything.
func TestAbuse(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, ben, olga := token(t, "ann", auth.Resident), token(t, "ben-id-5e1f", auth.Resident), token(t, "olga", auth.Official)
	id, other := s.fileWords(ann, "Zebra", "anonymous"), s.fileWords(ann, "Gnu", "public")
	complain := func(token string, id uuid.UUID, body string, want int) {
		t.Helper()
		if a := s.do(call{method: "POST", path: "/reports/" + id.String() + "/abuse", token: token, body: body}); a.StatusCode != want {
			t.Errorf("report abuse %s: %d %s, want %d", body, a.StatusCode, a.body, want)
		}
	}
	list := func() reportapi.AbuseList {
		t.Helper()
		list, _ := ok[reportapi.AbuseList](s, call{method: "GET", path: "/reports/queue/abuse", token: olga}, http.StatusOK)
		return list
	}
	complain(ben, id, `{"reason":"dislike"}`, http.StatusBadRequest)
	complain(ben, uuid.New(), `{"reason":"spam"}`, http.StatusNotFound)
	complain(ben, id, `{"reason":"personal_data","text":"It names my sister"}`, http.StatusNoContent)
	complain(ben, id, `{"reason":"spam","text":"again"}`, http.StatusNoContent)
	complain(ben, other, `{"reason":"offensive"}`, http.StatusNoContent)
	complain(token(t, "cleo", auth.Resident), id, `{"reason":"spam"}`, http.StatusNoContent)

	complain(token(t, "pavel", auth.Operator), id, `{"reason":"other"}`, http.StatusNoContent)
	complain("", uuid.New(), `{"reason":"spam"}`, http.StatusNotFound)
	for _, body := range []string{`{"reason":"spam"}`, `{"reason":"spam"}`, `{"reason":"personal_data","text":"It names me"}`} {
		complain("", id, body, http.StatusNoContent)
	}

	got := list()
	if len(got.Reports) != 2 || got.Reports[0].Report.ID != id || got.Reports[0].Report.AbuseReports != 5 || len(got.Reports[0].Entries) != 5 ||
		got.Reports[0].Entries[0].Text != "It names my sister" {
		t.Fatalf("officials see %+v; want both reports, that of two residents, an operator and two without an account first", got)
	}
	tracked := &tracker{s: s, secrets: []string{"ben-id-5e1f"}}
	tracked.lookIntoTables("") // a vote names its voter; there is none
	var same bool
	if err := s.pool.QueryRow(t.Context(), `select count(distinct user_mac) < count(*) from abuse_reports`).Scan(&same); err != nil || same {
		t.Errorf("two complaints of one person can be told apart in the table (error %v)", err)
	}
	for _, reader := range []string{"", ann, ben} {
		for _, c := range everything("/reports/" + id.String()) {
			c.token = reader
			if a := s.do(c); bytes.Contains(a.body, []byte("abuse")) || bytes.Contains(a.body, []byte("sister")) {
				t.Errorf("%s tells of it: %s", c.path, a.body)
			}
		}
	}

	if a := s.do(call{method: "DELETE", path: "/reports/" + other.String() + "/abuse", token: ben}); a.StatusCode != http.StatusForbidden {
		t.Errorf("a resident dismisses it: %d", a.StatusCode)
	}
	work, _ := ok[reportapi.Work](s, call{method: "DELETE", path: "/reports/" + other.String() + "/abuse", token: olga}, http.StatusOK)
	if work.Report.AbuseReports != 0 || len(work.Acts) != 1 || work.Acts[0].Action != "dismiss_abuse" {
		t.Errorf("after that the report is %+v", work)
	}
	complain(ben, other, `{"reason":"spam"}`, http.StatusNoContent) // ben has complained already
	s.hide(olga, id, "Names somebody")
	if got := list(); len(got.Reports) != 0 {
		t.Errorf("with one dismissed and the other hidden officials see %+v", got)
	}
}
