package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// A system that fails, hangs, loses answers and says things twice has each report of four
// departments once, or the report stands as unknown until an operator decides, and the city
// has each status once and in order, although delivery-worker is killed, each second time
// while the system has a report and has not answered, and the broker stops.
//
// BACK_OFFICE=10000/30/2 files that many reports, kills and stops that often: about a quarter
// of an hour, which needs -timeout 2h. No other test runs beside it: it would starve them.
func TestBackOffice(t *testing.T) {
	reports, kills, stops := 200, 4, 1
	if text := os.Getenv("BACK_OFFICE"); text != "" {
		if _, err := fmt.Sscanf(text, "%d/%d/%d", &reports, &kills, &stops); err != nil {
			t.Fatalf("BACK_OFFICE must be such as 10000/30/2: %v", err)
		}
	}
	began := time.Now()
	broker := rabbittest.StartServer(t)
	c := prepareStackAt(t, broker.URL(), broker.ManagementURL())
	c.start()
	office := openBackOffice(t)
	d := &dispatch{stack: c, office: office, reports: reports}
	d.connectOffice()
	c.worker.env["REPORT_SERVICE_URL"] = c.report.url()
	c.worker.start()
	d.passTime()

	var filing sync.WaitGroup
	t.Cleanup(filing.Wait)
	for filer := range 4 {
		user := c.signIn(fmt.Sprintf("Resident %d", filer), "resident")
		filing.Go(func() {
			for i := filer; i < reports; i += 4 {
				report := draft("Dark crossing")
				report.CategoryID = int32(1 + i/4%departments)
				if _, err := user.CreateReport(t.Context(), report, "Idempotency-Key", uuid.NewString()); err != nil {
					t.Errorf("file a report: %v", err)
				}
			}
		})
	}
	killed := 0
	disturb := append(slices.Repeat([]func(){func() {
		if killed++; killed%2 == 0 {
			office.awaitReport()
		}
		c.worker.kill()
		c.worker.start()
	}}, kills), slices.Repeat([]func(){func() {
		broker.Stop()
		d.awaitProgress(d.progress() + 10) // without one
		broker.Start()
	}}, stops)...)
	rand.Shuffle(len(disturb), func(i, j int) { disturb[i], disturb[j] = disturb[j], disturb[i] })
	for i, disturbance := range disturb {
		d.awaitProgress(3 * reports * 9 / 10 * (i + 1) / (len(disturb) + 1)) // arrivals, and two updates of each
		_ = wait.For(t.Context(), rand.N(500*time.Millisecond))
		disturbance()
	}
	filing.Wait()

	unknown := d.decide()
	d.await("both statuses of each report are back", `select count(*) from open311_requests where our_status = 'resolved' and their_status = 'FIXED'`)
	once := 0
	for id, order := range office.all() {
		if order.arrivals == 1 {
			once++
		} else {
			t.Errorf("report %s arrived %d times, want once", id, order.arrivals)
		}
	}
	if once != reports {
		t.Errorf("%d reports arrived once, want %d", once, reports)
	}
	d.checkCity()
	execute(t, c.notificationDB, `update open311_requests set created_at = created_at - interval '1 day', our_since = our_since - interval '1 day', their_since = their_since - interval '1 day'`)
	left := d.differences()
	if len(left) > 0 {
		t.Errorf("%d differences at the end, such as %+v", len(left), left[0])
	}
	fmt.Printf("reports=%d once=%d unknown=%d differences=%d kills=%d stops=%d faults=%v seconds=%.0f\n",
		reports, once, unknown, len(left), kills, stops, office.counts(), time.Since(began).Seconds())
}

// departments are those that have the same system, each with a connection of its own. A
// connection may ask 1,200 times a minute.
const departments = 4

// A dispatch is a stack whose reports a system of departments gets.
type dispatch struct {
	*stack
	office  *backOffice
	reports int
}

// do makes a request of an operator.
func (d *dispatch) do(method, path string, in, out any) {
	d.t.Helper()
	if err := d.userOf("pavel", "operator").Do(d.t.Context(), method, path, in, out); err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// connectOffice has departments of one category each get their reports there.
func (d *dispatch) connectOffice() {
	d.t.Helper()
	type body = map[string]any
	var list []body
	for id := range departments {
		list = append(list, body{"id": id + 1, "name": fmt.Sprintf("Department %d", id+1), "category_ids": []int{id + 1}})
	}
	d.do(http.MethodPut, "/reports/departments", body{"departments": list}, nil)
	for id := range int32(departments) {
		var made reportapi.MadeConnection
		d.do(http.MethodPost, "/admin/reports/connections", reportapi.NewConnection{Name: "Works", DepartmentID: id + 1}, &made)
		d.do(http.MethodPost, "/admin/open311/targets", notificationapi.NewTarget{
			Name: fmt.Sprintf("Works %d", id+1), URL: d.office.server.URL, ConnectionKey: made.Key, Services: notificationapi.TargetServices{{CategoryID: id + 1, ServiceCode: "REPAIR"}},
		}, nil)
	}
}

// passTime lets pauses pass as quickly as the promises allow until the test ends. What was
// sent is as old as a search needs once the client has given it up.
func (d *dispatch) passTime() {
	var passing sync.WaitGroup
	passing.Go(func() {
		for wait.For(d.t.Context(), 500*time.Millisecond) == nil {
			for _, sql := range []string{
				`update open311_targets set polled_at = null`,
				`update open311_requests set sent_at = sent_at - interval '150 seconds'
				 where number = '' and sent_at between now() - interval '100 seconds' and now() - interval '25 seconds'`,
				`update deliveries d set due_at = now() from open311_requests r
				 where d.channel = 'open311' and d.state = 'waiting' and d.due_at > now() and d.message_id = r.report_id::text
				   and (r.sent_at is null or r.sent_at < now() - interval '2 minutes')`,
			} {
				if _, err := d.notificationDB.Exec(d.t.Context(), sql); err != nil && d.t.Context().Err() == nil {
					d.t.Errorf("let time pass: %v", err)
				}
			}
		}
	})
	d.t.Cleanup(passing.Wait)
}

// progress returns how many reports arrived, and how many updates came back.
func (d *dispatch) progress() (n int) {
	if err := d.notificationDB.QueryRow(d.t.Context(), `select count(*) from open311_updates`).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n + len(d.office.all())
}

func (d *dispatch) awaitProgress(n int) {
	d.t.Helper()
	eventually.NothingMissing(d.t, "reports arrive and updates come back", func() string {
		if now := d.progress(); now < n {
			return fmt.Sprintf("%d of %d", now, n)
		}
		return ""
	})
}

// await returns when a count of the database of notifications is that of the reports.
func (d *dispatch) await(what, sql string) {
	d.t.Helper()
	patience := eventually.Patience + time.Duration(d.reports)*100*time.Millisecond
	n := 0
	for deadline := time.Now().Add(patience); n != d.reports; _ = wait.For(d.t.Context(), 100*time.Millisecond) {
		if err := d.notificationDB.QueryRow(d.t.Context(), sql).Scan(&n); err != nil || time.Now().After(deadline) {
			var rows string
			_ = d.notificationDB.QueryRow(d.t.Context(), `select json_agg(g) from (select number <> '' as numbered, unknown, our_status, their_status, count(*) from open311_requests group by 1, 2, 3, 4) g`).Scan(&rows)
			d.t.Fatalf("%s: %d of %d (error: %v): %s", what, n, d.reports, err, rows)
		}
	}
}

func (d *dispatch) differences() []notificationapi.Difference {
	d.t.Helper()
	var all notificationapi.Differences
	d.do(http.MethodGet, "/admin/open311/differences", nil, &all)
	return all.Differences
}

// decide has an operator look into the other system for each report that may have arrived,
// until none is left, and returns how many there were. None arrived twice by itself.
func (d *dispatch) decide() (unknown int) {
	d.t.Helper()
	for round := 0; ; round++ {
		d.await("each report has a number or stands as unknown", `
			select count(*) from open311_requests r join deliveries d on d.channel = 'open311' and d.message_id = r.report_id::text
			where d.state = 'done' and r.number <> '' or d.state = 'dead' and r.unknown`)
		execute(d.t, d.notificationDB, `update open311_requests set created_at = created_at - interval '11 minutes' where unknown and created_at > now() - interval '10 minutes'`)
		list, orders := d.differences(), d.office.all()
		if len(list) == 0 {
			return unknown
		}
		for _, difference := range list {
			order := orders[difference.ReportID.String()]
			if difference.Kind != "no_number" || !difference.Unknown || !difference.Undecided || order.arrivals > 1 {
				d.t.Errorf("%+v arrived %d times, want one that is unknown, once at most", difference, order.arrivals)
			}
			path := fmt.Sprintf("/admin/open311/targets/%s/reports/%s", difference.TargetID, difference.ReportID)
			d.do(http.MethodPost, path, notificationapi.RequestDecision{Number: order.number}, nil)
		}
		unknown += len(list)
	}
}

// checkCity proves that the city has each number, and each status once and in order, and so
// have the reporters.
func (d *dispatch) checkCity() {
	d.t.Helper()
	numbers := make(map[string]string)
	for id, order := range d.office.all() {
		numbers[id] = order.number
	}
	rows := must(d.reportDB.Query(d.t.Context(), `
		select r.id::text, coalesce((select number from external_refs e where e.report_id = r.id), ''),
		  (select string_agg(to_status, ' ' order by id) from status_history h where h.report_id = r.id) from reports r`))
	defer rows.Close()
	right := 0
	for rows.Next() {
		var id, number, history string
		if err := rows.Scan(&id, &number, &history); err != nil {
			d.t.Fatal(err)
		}
		if number != numbers[id] || history != "pending in_progress resolved" {
			d.t.Errorf("report %s has number %s and was %s, want %s, each status once and in order", id, number, history, numbers[id])
		} else {
			right++
		}
	}
	if rows.Err() != nil || right != d.reports {
		d.t.Errorf("%d reports have their numbers and statuses (error: %v), want %d", right, rows.Err(), d.reports)
	}
	d.await("each reporter is notified of each status, once and in order", `
		select count(*) from (
		  select from notifications where type = 'report.status.updated' group by stream_id, report_id
		  having string_agg(data ->> 'status', ' ' order by seq) = 'in_progress resolved') n`)
	var all int
	if err := d.notificationDB.QueryRow(d.t.Context(), `select count(*) from notifications where type = 'report.status.updated'`).Scan(&all); err != nil || all != 2*d.reports {
		d.t.Errorf("%d notifications of statuses (error: %v), want %d", all, err, 2*d.reports)
	}
}

// A backOffice is a department's system, which speaks GeoReport v2. Of a hundred requests of
// each kind it fails three, hangs at one, and takes one without an answer. Of five it says the
// answer twice, as it does of updates.
type backOffice struct {
	server *httptest.Server

	mu     sync.Mutex
	random *rand.Rand
	decks  map[string][]string // what it does next, by the kind of request
	faults map[string]int
	orders map[string]*workOrder // by the id of the report
	latest []*workOrder          // the oldest first
	told   []officeUpdate        // in the order of their times
	held   chan struct{}         // closes when it has a report that it does not answer
}

// A workOrder is what became of a report.
type workOrder struct {
	report   string
	number   string
	arrivals int
	at, next time.Time // it is fixed next
	status   string
}

type officeUpdate struct {
	at  time.Time
	xml string
}

// pageSize is how many entries of a list it shows at once: of requests, the latest.
const pageSize = 1000

func openBackOffice(t *testing.T) *backOffice {
	t.Helper()
	o := &backOffice{random: rand.New(rand.NewPCG(311, 2)), decks: map[string][]string{"search": {"fail"}, "servicerequestupdates": {"hang"}}, faults: make(map[string]int), orders: make(map[string]*workOrder)}
	o.server = httptest.NewServer(o)
	t.Cleanup(func() { o.server.CloseClientConnections(); o.server.Close() })
	return o
}

// all returns what it has.
func (o *backOffice) all() map[string]workOrder {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make(map[string]workOrder, len(o.orders))
	for id, order := range o.orders {
		all[id] = *order
	}
	return all
}

// counts returns how often it did what.
func (o *backOffice) counts() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.faults
}

// awaitReport returns when it has taken a report that it will not answer, if one comes soon.
func (o *backOffice) awaitReport() {
	held := make(chan struct{})
	hold := func(held chan struct{}) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.held = held
	}
	hold(held)
	select {
	case <-held:
	case <-time.After(10 * time.Second): // each has arrived
		hold(nil)
	}
}

// drawLocked returns what it does with a request of a kind.
func (o *backOffice) drawLocked(kind string) string {
	if len(o.decks[kind]) == 0 {
		deck := slices.Concat(slices.Repeat([]string{"fail"}, 3), []string{"hang", "lose"}, slices.Repeat([]string{"twice"}, 5), make([]string, 90))
		o.random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		o.decks[kind] = deck
	}
	fault := o.decks[kind][0]
	o.decks[kind] = o.decks[kind][1:]
	if fault != "" {
		o.faults[kind+" "+fault]++
	}
	return fault
}

// takeLocked takes a report, and says at once that somebody works on it.
func (o *backOffice) takeLocked(report string) *workOrder {
	order, ok := o.orders[report]
	if !ok {
		order = &workOrder{report: report, number: fmt.Sprintf("W-%d", 1000+len(o.orders)), at: time.Now(), status: "open", next: time.Now().Add(time.Duration(o.random.IntN(5000)) * time.Millisecond)}
		o.orders[report] = order
		o.latest = append(o.latest, order)
		o.tellLocked(order, "in_progress")
	}
	order.arrivals++
	return order
}

// tellLocked says something of a report, of each twentieth twice.
func (o *backOffice) tellLocked(order *workOrder, status string) {
	update := officeUpdate{at: time.Now()}
	update.xml = fmt.Sprintf(`<request_update><update_id>%s-%s</update_id><service_request_id>%[1]s</service_request_id><status>%[2]s</status><updated_datetime>%s</updated_datetime><description>As agreed</description></request_update>`,
		order.number, strings.ToUpper(status), update.at.UTC().Format(time.RFC3339Nano))
	o.told = append(o.told, update)
	if o.random.IntN(20) == 0 {
		o.faults["update twice"]++
		o.told = append(o.told, update)
	}
}

// workLocked fixes what is to be fixed by now.
func (o *backOffice) workLocked() {
	for _, order := range o.latest {
		if order.status == "open" && time.Now().After(order.next) {
			order.status = "closed"
			o.tellLocked(order, "fixed")
		}
	}
}

func (o *backOffice) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	kind := strings.TrimSuffix(r.URL.Path, ".xml")[1:]
	switch {
	case r.Method == http.MethodPost:
		kind = "report"
	case r.Form.Has("service_request_id"):
		kind = "numbers"
	case kind == "requests":
		kind = "search"
	}
	o.mu.Lock()
	fault := o.drawLocked(kind)
	before := o.random.IntN(2) == 0
	o.workLocked()
	answer := ""
	if kind == "report" && !(before && (fault == "fail" || fault == "hang")) {
		answer = o.takeLocked(r.Form.Get("attribute[cityconnect_id]")).xml()
		if o.held != nil {
			close(o.held)
			o.held, fault, before = nil, "hang", false
			o.faults["report held"]++
		}
	} else if kind != "report" {
		answer = o.listLocked(kind, r)
	}
	o.mu.Unlock()
	switch fault {
	case "fail":
		w.WriteHeader(http.StatusInternalServerError)
		return
	case "hang":
		<-r.Context().Done()
		if kind == "report" && before { // it took long, and takes it now
			o.mu.Lock()
			defer o.mu.Unlock()
			o.takeLocked(r.Form.Get("attribute[cityconnect_id]"))
		}
		return
	case "lose":
		panic(http.ErrAbortHandler)
	case "twice":
		answer += answer
	}
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="utf-8"?><all>`+answer+`</all>`)
}

// listLocked returns the entries of a page of a list.
func (o *backOffice) listLocked(kind string, r *http.Request) string {
	from, _ := time.Parse(time.RFC3339, r.Form.Get("start_date"))
	to, _ := time.Parse(time.RFC3339, r.Form.Get("end_date"))
	var entries []string
	if kind == "servicerequestupdates" {
		for _, update := range o.told {
			if !update.at.Before(from) && update.at.Before(to) {
				entries = append(entries, update.xml)
			}
		}
	} else {
		numbers := strings.Split(r.Form.Get("service_request_id"), ",")
		for _, order := range slices.Backward(o.latest) {
			if kind == "search" && order.at.After(from) && order.at.Before(to) || slices.Contains(numbers, order.number) {
				entries = append(entries, order.xml())
			}
		}
	}
	page := 1
	_, _ = fmt.Sscan(r.Form.Get("page"), &page)
	entries = entries[min(len(entries), (page-1)*pageSize):]
	return strings.Join(entries[:min(len(entries), pageSize)], "")
}

// xml returns its entry of a list of requests.
func (w *workOrder) xml() string {
	return fmt.Sprintf(`<request><service_request_id>%s</service_request_id><status>%s</status><extended_attributes><cityconnect_id>%s</cityconnect_id></extended_attributes></request>`, w.number, w.status, w.report)
}
