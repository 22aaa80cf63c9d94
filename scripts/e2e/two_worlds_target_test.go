package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// Neither the system of a department nor its connection can tell who filed a report, nor
// whether they hid their name.
func TestTwoWorldsOfABackOffice(t *testing.T) {
	t.Parallel()
	compareWorlds(t, "named/anonymous", func(t *testing.T, other, leak bool) world {
		if other {
			return playAtABackOffice(t, bene, "anonymous", leak)
		}
		return playAtABackOffice(t, ann, "public", leak)
	})
}

// playAtABackOffice has a resident file a report that a department's system gets, after one of
// somebody else. The system and an official work on it. It returns what both read.
func playAtABackOffice(t *testing.T, author person, privacy client.PrivacyLevel, leak bool) world {
	t.Helper()
	c, w, target := prepareStack(t), world{}, &standIn{}
	execute(t, c.reportDB, `insert into departments (id, name) values (1, 'Lighting')`)
	execute(t, c.reportDB, `update categories set department_id = 1`)
	c.start()
	server := httptest.NewServer(target)
	t.Cleanup(server.Close)
	pavel, olga := c.userOf("pavel", "operator"), c.userOf("olga", "official")
	c.setAssets(pavel)
	var made reportapi.MadeConnection
	insist := func(path string, in, out any) {
		if err := pavel.Insist(t.Context(), http.MethodPost, path, in, out); err != nil {
			t.Fatalf("POST %s: %v", path, err)
		}
	}
	insist("/admin/reports/connections", reportapi.NewConnection{Name: "Works", DepartmentID: 1, Private: true}, &made)
	insist("/admin/open311/targets", notificationapi.NewTarget{
		Name: "Works", URL: server.URL, APIKey: "files", UpdateKey: "updates", ConnectionKey: made.Key, Services: notificationapi.TargetServices{{CategoryID: 2, ServiceCode: "LIGHT"}},
	}, nil)
	c.holdTargets()
	c.worker.env["REPORT_SERVICE_URL"] = c.report.url()
	c.startWorker()
	c.startPhotoWorker()

	var reports []client.Report
	for i, filed := range []struct {
		by      *client.Client
		privacy client.PrivacyLevel
	}{{c.userOf("carl", "resident"), "public"}, {c.As(author.id, author.token()), privacy}} {
		in := draft("A dark crossing")
		in.PrivacyLevel, in.Asset = filed.privacy, "lamps/L-7"
		report := must(filed.by.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString()))
		c.verdictOn(filed.by, report, c.upload(filed.by, report, smallPicture(t)))
		if leak {
			c.plantLeak()
		}
		c.pollTargets()
		eventually.True(t, "the report has a number", func() bool {
			return value[int](t, c.notificationDB, `select count(*) from deliveries where channel = 'open311' and state = 'done'`) == i+1
		})
		reports = append(reports, report)
	}
	target.say("W-2", "in_progress", "On our way")
	c.pollTargets()
	move(t, olga, reports[1], "resolved", "Done")
	c.pollTargets() // sends the new status
	c.pollTargets()

	w["the target"] = target.seen()
	paths := []string{"/reports/connection", "/reports/connection?without_number=true"}
	for _, r := range reports {
		paths = append(paths, "/reports/"+r.ID.String()+"/connection", "/reports/"+r.ID.String()+"/history")
	}
	w["a connection"] = c.answers(c.As(made.ID.String(), made.Key), paths)
	w["the operator"] = c.answers(pavel, []string{"/admin/open311/targets", "/admin/open311/differences", "/admin/deliveries?report_id=" + reports[1].ID.String()})
	for line := range strings.Lines(c.worker.log.String()) {
		if !aboutTheMachine(line) {
			w["log of the worker"] = append(w["log of the worker"], withoutChance(line))
		}
	}
	slices.Sort(w["log of the worker"])
	w["log of the worker"] = slices.Compact(w["log of the worker"])
	return w
}

// A standIn is the system of a department: it numbers what it gets, and keeps each request as
// it came.
type standIn struct {
	mu       sync.Mutex
	requests []string
	filed    int
	updates  string
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	form, _ := url.QueryUnescape(r.Form.Encode())
	s.requests = append(s.requests, withoutChance(fmt.Sprintf("%s %s %q %s", r.Method, r.URL.Path, r.Header, form)))
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/requests.xml":
		s.filed++
		fmt.Fprintf(w, `<service_requests><request><service_request_id>W-%d</service_request_id></request></service_requests>`, s.filed)
	case r.URL.Path == "/requests.xml":
		fmt.Fprint(w, `<service_requests/>`)
	default:
		fmt.Fprintf(w, `<service_request_updates>%s</service_request_updates>`, s.updates)
	}
}

// say has it tell of a new status.
func (s *standIn) say(number, status, words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates += fmt.Sprintf(`<request_update><update_id>%s</update_id><service_request_id>%s</service_request_id><status>%s</status><description>%s</description></request_update>`,
		words, number, status, words)
}

func (s *standIn) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}
