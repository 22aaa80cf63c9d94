package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
)

// fromTelephone is what an official enters during a call.
var fromTelephone = strings.NewReplacer(`"privacy_level":"public"`, `"privacy_level":"anonymous","source":"telephone"`).Replace(newReport)

// An official files for somebody: it is a report without a name, of a reporter whom nobody
// is, and officials alone see how it came and who entered it. The same key files it once.
func TestFilingForSomebody(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	olga, otto, ann := token(t, "olga", auth.Official), token(t, "otto", auth.Official), token(t, "ann", auth.Resident)
	filing := call{method: "POST", path: "/reports", token: olga, body: fromTelephone, headers: map[string]string{"Idempotency-Key": "1"}}
	rep, _ := ok[reportapi.Report](s, filing, http.StatusCreated)
	if again, _ := ok[reportapi.Report](s, filing, http.StatusCreated); again.ID != rep.ID || again.Mine {
		t.Errorf("the repetition is %s, mine %t; want %s", again.ID, again.Mine, rep.ID)
	}
	if rep.Mine || rep.PrivacyLevel != "anonymous" || rep.ReporterName != "" {
		t.Errorf("filed as %+v, want nobody's and anonymous", rep)
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: "/reports/" + rep.ID.String() + "/work", token: otto}, http.StatusOK)
	if in := work.Intake; in.Source != "telephone" || in.EnteredBy.ID != "olga" || in.Caller == "" {
		t.Errorf("officials see %+v, want how it came and who entered it", in)
	}
	if mine, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports/mine", token: olga}, http.StatusOK); len(mine.Reports) != 0 {
		t.Error("the report is that of the official who entered it")
	}
	for _, reader := range []string{"", ann, olga} {
		answer, _ := ok[json.RawMessage](s, call{method: "GET", path: "/reports/" + rep.ID.String(), token: reader}, http.StatusOK)
		for _, secret := range []string{"telephone", "olga", "intake", "source"} {
			if strings.Contains(string(answer), secret) {
				t.Errorf("the report has %q: %s", secret, answer)
			}
		}
	}
	s.file(ann, "anonymous")
	for query, want := range map[string]int{"source=telephone": 1, "source=letter&source=telephone": 1, "source=letter": 0, "": 2} {
		if got := s.queue(olga, query); len(got) != want {
			t.Errorf("%q shows %q, want %d", query, got, want)
		}
	}
	for who, body := range map[string]string{
		ann:  fromTelephone,
		olga: strings.Replace(fromTelephone, `"anonymous"`, `"public"`, 1),
		otto: strings.Replace(fromTelephone, "telephone", "pigeon", 1),
	} {
		s.wantStatus(http.StatusBadRequest, call{method: "POST", path: "/reports", token: who, body: body})
	}
	question := call{method: "POST", path: "/reports/" + rep.ID.String() + "/questions", token: otto, body: `{"text":"Which one?"}`}
	s.wantStatus(http.StatusConflict, question) // nobody could answer
}

// The limit of residents does not hold for officials who file for others.
func TestOfficialsFileForMany(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.ReportsPerUser = ratelimit.Limit{Turns: 1, Period: time.Hour} })
	olga := token(t, "olga", auth.Official)
	for range 3 {
		ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: olga, body: fromTelephone}, http.StatusCreated)
	}
	ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: olga, body: newReport}, http.StatusCreated)
	s.wantStatus(http.StatusTooManyRequests, call{method: "POST", path: "/reports", token: olga, body: newReport})
}
