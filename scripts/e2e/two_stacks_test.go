package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// An act of an official is theirs in the city, or in the other one that is its back office. A
// status with a plus comes with a photo of the finished work; one that is empty is a reply.
type act struct {
	there        bool
	status, note string
}

// A course is what officials of both cities do to a report, and the history that it then has
// in each. Acts of one round are done before either city knows of those of the other.
type course struct {
	rounds      [][]act
	here, there string
}

const (
	here  = false
	there = true
)

// courses are those of the reports, one after the other. The last is for one report alone:
// both end it at the same moment, each otherwise, which people have to settle.
var courses = []course{
	{[][]act{{{there, "in_progress", ""}}, {{there, "resolved+", "A new lamp"}}}, "in_progress resolved", "in_progress resolved"},
	{[][]act{{{there, "resolved+", ""}}}, "resolved", "resolved"},
	{[][]act{{{there, "rejected", "It is not the city's"}}}, "rejected", "rejected"},
	{[][]act{{{here, "resolved+", "We passed by"}}}, "resolved", "resolved"},
	{[][]act{{{here, "rejected", "It was reported before"}}}, "rejected", "rejected"},
	{[][]act{{{there, "resolved", "Done"}}, {{here, "in_progress", "It is dark again"}}, {{there, "resolved+", "Done once more"}}},
		"resolved in_progress resolved", "resolved in_progress resolved"},
	{[][]act{{{here, "in_progress", ""}}, {{there, "resolved+", "Done"}}}, "in_progress resolved", "in_progress resolved"},
	{[][]act{{{here, "resolved", "Done"}}, {{there, "in_progress", "It is dark again"}}, {{here, "resolved+", "Done"}}},
		"resolved in_progress resolved", "resolved in_progress resolved"},
	{[][]act{{{here, "in_progress", ""}, {there, "resolved+", "Done"}}}, "in_progress resolved", "resolved"},
	{[][]act{{{here, "", "We know of it"}}, {{there, "", "The crew comes on Monday"}}}, "pending pending", "pending"},
	{[][]act{{{here, "resolved", "Done"}, {there, "rejected", "It is not the city's"}}, {{there, "pending", "We look again"}}, {{there, "resolved", "Done"}}},
		"resolved in_progress resolved", "rejected pending resolved"},
}

// Two stacks of this project, one as the back office of the other: each report is there once,
// and once only a killed worker notwithstanding; officials of both change statuses and add
// photos of the finished work. At the end the statuses are equal, each reporter was notified
// once of each change, and nothing in the other city's databases names a reporter.
// TWO_STACKS_REPORTS files as many. No other test runs beside it: two stacks starve them.
func TestTwoStacks(t *testing.T) {
	n := 40
	if text := os.Getenv("TWO_STACKS_REPORTS"); text != "" {
		n = must(strconv.Atoi(text))
	}
	p := pairUp(t)
	p.file(n)
	p.arrive(n)
	for round := range 3 {
		p.play(round)
		p.settle(round)
	}
	p.city.pollTargets() // nothing moves any more
	p.check(n)
}

// twoCities are two stacks, the other one as the back office of the first.
type twoCities struct {
	t               *testing.T
	city, other     *stack
	official, works *client.Client // of each
	operator        *client.Client
	picture         []byte
	reports         []client.Report
	numbers         map[uuid.UUID]client.Report // as the other city has them
	killedAfter     int                         // so many reports had arrived
}

func pairUp(t *testing.T) *twoCities {
	t.Helper()
	p := &twoCities{t: t, city: prepareStack(t), other: prepareStack(t), picture: smallPicture(t), numbers: make(map[uuid.UUID]client.Report)}
	for _, c := range []*stack{p.city, p.other} {
		execute(t, c.reportDB, `insert into departments (id, name) values (1, 'Lighting')`)
		execute(t, c.reportDB, `update categories set department_id = 1`)
		c.start()
		c.startPhotoWorker()
	}
	p.official = p.city.As("o", token(jwt.MapClaims{"sub": "canary-official", "name": "Canary Official", "role": "official"}))
	p.works, p.operator = p.other.userOf("wim", "official"), p.city.userOf("otto", "operator")
	var key reportapi.MadeOpen311Key
	p.do(p.other.userOf("otto", "operator"), http.MethodPost, "/admin/reports/open311/keys", map[string]string{"name": "The city"}, &key)
	target := notificationapi.NewTarget{
		Name: "The other city", URL: p.other.gateway.URL + "/open311/v2", APIKey: key.Key, UpdateKey: p.connection(p.other), ConnectionKey: p.connection(p.city), Repeats: true,
		Services: notificationapi.TargetServices{{CategoryID: 2, ServiceCode: "2"}},
	}
	p.do(p.operator, http.MethodPost, "/admin/open311/targets", target, nil)
	p.city.worker.env["REPORT_SERVICE_URL"] = p.city.report.url()
	p.city.startWorker()
	return p
}

// connection returns the key of a connection of a city's department.
func (p *twoCities) connection(c *stack) string {
	p.t.Helper()
	var made reportapi.MadeConnection
	p.do(c.userOf("otto", "operator"), http.MethodPost, "/admin/reports/connections", reportapi.NewConnection{Name: "Back office", DepartmentID: 1}, &made)
	return made.Key
}

func (p *twoCities) do(user *client.Client, method, path string, in, out any) {
	p.t.Helper()
	if err := user.Insist(p.t.Context(), method, path, in, out); err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// each does something to every report, several at a time.
func (p *twoCities) each(do func(i int)) {
	p.t.Helper()
	var running sync.WaitGroup
	for part := range 4 {
		running.Go(func() {
			for i := part; i < len(p.reports) && !p.t.Failed(); i += 4 {
				do(i)
			}
		})
	}
	running.Wait()
	if p.t.Failed() {
		p.t.FailNow()
	}
}

// file has ten reporters file n reports, half of them without their names, and some with
// a photo.
func (p *twoCities) file(n int) {
	p.t.Helper()
	p.city.holdTargets()
	p.reports = make([]client.Report, n)
	p.each(func(i int) {
		id := fmt.Sprintf("canary-reporter-%d", i%10)
		reporter := p.city.As(id, token(jwt.MapClaims{"sub": id, "name": "Canary Name", "email": id + "@surel.test"}))
		in := draft(fmt.Sprintf("Lamp %d is dark", i))
		in.PrivacyLevel = []client.PrivacyLevel{"public", "anonymous"}[i%2]
		var err error
		if p.reports[i], err = reporter.CreateReport(p.t.Context(), in, "Idempotency-Key", uuid.NewString()); err != nil {
			p.t.Errorf("file a report: %v", err)
		} else if i%11 == 0 {
			p.city.upload(reporter, p.reports[i], p.picture)
		}
	})
}

// holdTargets keeps the worker from reading the city and its targets, as it does each minute,
// until pollTargets.
func (c *stack) holdTargets() {
	c.t.Helper()
	execute(c.t, c.notificationDB, `update open311_targets set polled_at = now() + interval '1 day'`)
}

// pollTargets returns once the worker has read the city and its target.
func (c *stack) pollTargets() {
	c.t.Helper()
	began := value[time.Time](c.t, c.notificationDB, `update open311_targets set polled_at = null, problem = '' returning now()`)
	eventually.True(c.t, "the worker has read the city and its target", func() bool {
		return value[bool](c.t, c.notificationDB, `select problem <> '' or read_to >= $1 and fetched_to >= $1 from open311_targets`, began)
	})
	c.holdTargets()
}

func value[T any](t *testing.T, db *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// arrive returns when every report has a number. The worker is killed on the way.
func (p *twoCities) arrive(n int) {
	p.t.Helper()
	p.city.pollTargets()
	db := p.city.notificationDB
	done := func() int {
		return value[int](p.t, db, `select count(*) from deliveries where channel = 'open311' and state = 'done'`)
	}
	eventually.True(p.t, "some reports have arrived", func() bool { return done() > n/4 })
	p.city.worker.kill()
	p.killedAfter = done()
	p.city.worker.start()
	eventually.True(p.t, "all reports have arrived", func() bool {
		execute(p.t, db, `update deliveries set due_at = now() where channel = 'open311' and state = 'waiting' and due_at > now()`)
		return done() == n
	})
	rows, err := p.city.reportDB.Query(p.t.Context(), `select report_id, number from external_refs`)
	if err != nil {
		p.t.Fatal(err)
	}
	var id uuid.UUID
	var number string
	if _, err := pgx.ForEachRow(rows, []any{&id, &number}, func() error {
		p.numbers[id] = client.Report{ID: uuid.MustParse(number)}
		return nil
	}); err != nil {
		p.t.Fatal(err)
	}
	for _, r := range p.reports {
		got := value[string](p.t, p.other.reportDB, `select string_agg(title, ',') from reports where id = $1 or title = $2`, p.numbers[r.ID].ID, r.Title)
		if got != r.Title {
			p.t.Errorf("the other city has %q, want %q once", got, r.Title)
		}
	}
}

// courseOf returns the course of a report.
func (p *twoCities) courseOf(i int) course {
	if i == len(p.reports)-1 {
		return courses[len(courses)-1]
	}
	return courses[i%(len(courses)-1)]
}

// play does the acts of a round.
func (p *twoCities) play(round int) {
	p.t.Helper()
	p.each(func(i int) {
		c := p.courseOf(i)
		if round >= len(c.rounds) {
			return
		}
		for _, a := range c.rounds[round] {
			stack, official, report := p.city, p.official, p.reports[i]
			if a.there {
				stack, official, report = p.other, p.works, p.numbers[report.ID]
			}
			status, photo := strings.CutSuffix(a.status, "+")
			path := "/reports/" + report.ID.String()
			if photo {
				p.finish(stack, official, report)
			}
			var err error
			if status == "" {
				err = official.Do(p.t.Context(), http.MethodPost, path+"/replies", map[string]string{"text": a.note}, nil)
			} else {
				_, err = official.SetStatus(p.t.Context(), report.ID, status, a.note)
			}
			if err != nil {
				p.t.Errorf("report %d, round %d, %+v: %v", i, round, a, err)
			}
		}
	})
}

// finish adds a photo of the finished work, twice, as a client does that got no answer.
func (p *twoCities) finish(c *stack, official *client.Client, report client.Report) {
	url := fmt.Sprintf("%s/reports/%s/photos/%s?purpose=after", c.gateway.URL, report.ID, uuid.New())
	for range 2 {
		req := must(http.NewRequestWithContext(p.t.Context(), http.MethodPut, url, bytes.NewReader(p.picture)))
		req.Header.Set("Authorization", "Bearer "+official.Token())
		req.Header.Set("Content-Type", "image/png")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			p.t.Errorf("upload a photo of the finished work: %v", err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			p.t.Errorf("upload a photo of the finished work: %s", resp.Status)
		}
	}
}

// settle has the cities exchange what they did. After the first round one report, which both
// ended otherwise, is all that differs after an hour. After the second it is open in both, and
// in progress in one: Open311 has one word for that.
func (p *twoCities) settle(round int) {
	p.t.Helper()
	for range 40 {
		p.city.pollTargets()
		if left := p.unequal(); len(left) == 0 || round < 2 && slices.Equal(left, []int{len(p.reports) - 1}) {
			p.city.pollTargets() // takes the statuses that were handed on
			break
		}
	}
	var want []uuid.UUID
	if round == 0 {
		want = []uuid.UUID{p.reports[len(p.reports)-1].ID}
	}
	if got := p.differences(); !slices.Equal(got, want) {
		p.t.Fatalf("after round %d the cities differ about %v of %v, want %v", round, got, p.unequal(), want)
	}
}

// unequal returns the reports with another status in each city.
func (p *twoCities) unequal() (all []int) {
	p.t.Helper()
	ours, theirs := statuses(p.t, p.city), statuses(p.t, p.other)
	for i, r := range p.reports {
		if ours[r.ID] != theirs[p.numbers[r.ID].ID] {
			all = append(all, i)
		}
	}
	return all
}

func statuses(t *testing.T, c *stack) map[uuid.UUID]string {
	t.Helper()
	return byReport(t, c.reportDB, `select id, status from reports`)
}

// byReport returns a text of each report.
func byReport(t *testing.T, db *pgxpool.Pool, sql string) map[uuid.UUID]string {
	t.Helper()
	all := make(map[uuid.UUID]string)
	rows, err := db.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	var id uuid.UUID
	var text string
	if _, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error { all[id] = text; return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// differences returns what is in the operators' list, as it is after two hours.
func (p *twoCities) differences() (reports []uuid.UUID) {
	p.t.Helper()
	execute(p.t, p.city.notificationDB, `
		update open311_requests set created_at = created_at - interval '2 hours', our_since = our_since - interval '2 hours', their_since = their_since - interval '2 hours'`)
	var list notificationapi.Differences
	p.do(p.operator, http.MethodGet, "/admin/open311/differences", nil, &list)
	for _, d := range list.Differences {
		reports = append(reports, d.ReportID)
	}
	return reports
}

// check looks at both cities when all is over.
func (p *twoCities) check(n int) {
	t := p.t
	t.Helper()
	const histories = `select report_id, string_agg(to_status, ' ' order by id) from status_history where from_status is not null group by 1`
	const changes = `select report_id, string_agg(report_version::text, ' ' order by report_version) from status_history where from_status is not null group by 1`
	const notices = `select report_id, string_agg(report_version::text, ' ' order by report_version) from notifications where type = 'report.status.updated' group by 1`
	for _, c := range []*stack{p.city, p.other} {
		eventually.True(t, "all photos are checked and all messages published", func() bool {
			return value[bool](t, c.reportDB, `select not exists (select from photos where state = 'checking') and not exists (select from outbox_messages where status = 'pending')`)
		})
	}
	versions := byReport(t, p.city.reportDB, changes)
	eventually.NothingMissing(t, "each reporter is notified once of each change", func() string {
		notified := byReport(t, p.city.notificationDB, notices)
		for _, r := range p.reports {
			if notified[r.ID] != versions[r.ID] {
				return fmt.Sprintf("versions %q were notified of %q", notified[r.ID], versions[r.ID])
			}
		}
		return ""
	})
	ours, theirs := byReport(t, p.city.reportDB, histories), byReport(t, p.other.reportDB, histories)
	const shown = `select report_id, count(*)::text from photos where official and state = 'ready' group by 1`
	ourPhotos, theirPhotos := byReport(t, p.city.reportDB, shown), byReport(t, p.other.reportDB, shown)
	moves, photos := 0, 0
	for i, r := range p.reports {
		c, number := p.courseOf(i), p.numbers[r.ID].ID
		if ours[r.ID] != c.here || theirs[number] != c.there {
			t.Errorf("report %d has the history %q, and %q in the other city; want %q and %q", i, ours[r.ID], theirs[number], c.here, c.there)
		}
		moves += len(strings.Fields(c.here))
		want := map[bool]string{}
		for _, a := range slices.Concat(c.rounds...) {
			if strings.HasSuffix(a.status, "+") {
				want[a.there] = "1"
				photos++
			}
		}
		if ourPhotos[r.ID] != want[here] || theirPhotos[number] != want[there] {
			t.Errorf("report %d has %q photos of the finished work, and %q in the other city; want %q and %q", i, ourPhotos[r.ID], theirPhotos[number], want[here], want[there])
		}
	}
	if got := value[int](t, p.other.reportDB, `select count(*) from reports`); got != n {
		t.Errorf("the other city has %d reports, want %d", got, n)
	}
	if left := p.unequal(); len(left) > 0 {
		t.Errorf("the statuses of reports %v differ", left)
	}
	if left := p.differences(); len(left) > 0 {
		t.Errorf("the list of differences has %v, want none", left)
	}
	p.searchTheOther()
	fmt.Printf("two stacks reports=%d killed_after=%d notified_once=%d photos=%d differing=%d\n", n, p.killedAfter, moves, photos, len(p.unequal()))
}

// searchTheOther searches the other city for everything that names a person of the first one.
func (p *twoCities) searchTheOther() {
	t := p.t
	t.Helper()
	for _, db := range []*pgxpool.Pool{p.other.reportDB, p.other.notificationDB} {
		for _, table := range tables(t, db) {
			if found := value[int](t, db, `select count(*) from `+table+` r where to_jsonb(r)::text ~* 'canary|surel\.test'`); found > 0 {
				t.Errorf("table %s of the other city has %d rows that name a person", table, found)
			}
		}
	}
	for _, process := range []*process{p.other.report, p.other.notification, p.other.photo} {
		if strings.Contains(strings.ToLower(process.log.String()), "canary") {
			t.Errorf("the log of the other city's %s names a person", process.path)
		}
	}
	if value[int](t, p.city.reportDB, `select count(*) from reporters r where to_jsonb(r)::text ~* 'canary'`) == 0 {
		t.Error("the search would find nobody in the first city")
	}
}
