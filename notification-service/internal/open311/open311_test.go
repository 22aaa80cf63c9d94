package open311_test

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/open311"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

const connectionKey = "ccx_AAAAAAAAAAAAAAAAAAAAAAAAAA"

// The ways in which a request may have arrived, and what becomes of it. Nothing is sent twice.
func TestARequestThatMayHaveArrived(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		behaviour string
		blind     bool // the target cannot be searched
		repeats   bool
		killed    bool // the worker, between sending and recording
		others    int  // other requests, which show what a search finds
		page      int  // how many a list has at once, if it has pages
		want      string
		times     int
	}{
		"the answer is lost, and found":             {behaviour: "lose", want: "done", times: 1},
		"it failed afterwards, and is found":        {behaviour: "fail after", want: "done", times: 1},
		"it failed before, and others are found":    {behaviour: "fail", others: 1, want: "done", times: 1},
		"the answer is lost, and on a later page":   {behaviour: "lose", others: 5, page: 2, want: "done", times: 1},
		"it failed before, and there are pages":     {behaviour: "fail", others: 5, page: 2, want: "done", times: 1},
		"it failed before, and pages are refused":   {behaviour: "fail", others: 5, page: -1, want: "done", times: 1},
		"the answer is lost, and pages are closed":  {behaviour: "lose", others: 5, page: -2, want: "unknown", times: 1},
		"it failed before, and nothing is there":    {behaviour: "fail", want: "unknown", times: 0},
		"the answer is lost, and it cannot be seen": {behaviour: "lose", blind: true, want: "unknown", times: 1},
		"the answer is lost, and it repeats":        {behaviour: "lose", blind: true, repeats: true, want: "done", times: 1},
		"it was refused at once":                    {behaviour: "refuse", want: "dead", times: 0},
		"it was asked to wait":                      {behaviour: "busy", want: "done", times: 1},
		"the worker was killed after sending":       {killed: true, behaviour: "", want: "done", times: 1},
		"the worker was killed, and it is blind":    {killed: true, blind: true, want: "unknown", times: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.far.blind, w.far.repeats, w.far.page = tt.blind, tt.repeats, tt.page
			w.target(func(target *open311.Target) { target.Repeats = tt.repeats })
			id := w.city.add("pending", 2)
			w.poll(w.poller())
			for range tt.others {
				w.far.file(uuid.NewString())
			}
			if tt.killed { // what it had written down, and done
				w.exec(`update open311_requests set sent_at = now(), form_hash = '\x00'`)
				w.far.file(id.String())
			}
			first := true
			w.far.bad = func() string {
				if !first {
					return ""
				}
				first = false
				return tt.behaviour
			}
			w.start()
			switch tt.want {
			case "unknown":
				w.waitFor(`select unknown from open311_requests`)
				w.waitFor(`select state = 'dead' from deliveries`)
			default:
				w.waitFor(fmt.Sprintf(`select state = '%s' from deliveries`, tt.want))
			}
			if got := w.far.filed()[id.String()]; got != tt.times {
				t.Errorf("the target has it %d times, want %d", got, tt.times)
			}
		})
	}
}

// An operator decides about a report that may have arrived: its number, or once more.
func TestAnOperatorDecides(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"W-1", ""} {
		w := newWorld(t)
		w.far.blind = true
		target := w.target(nil)
		id := w.city.add("pending", 2)
		lost := true
		w.far.bad = func() string {
			if lost {
				lost = false
				return "fail"
			}
			return ""
		}
		w.poll(w.poller())
		w.start()
		w.waitFor(`select unknown from open311_requests`)
		w.waitFor(`select state = 'dead' from deliveries`)
		w.exec(`update open311_requests set created_at = now() - interval '11 minutes'`)
		if d := w.differences(); len(d) != 1 || d[0].Kind != open311.NoNumber || !d[0].Undecided || !d[0].Unknown {
			t.Fatalf("differences %+v, want one that is undecided", d)
		}
		if err := w.targets.Decide(t.Context(), "operator", target.ID, id, number); err != nil {
			t.Fatal(err)
		}
		w.waitFor(`select state = 'done' from deliveries`)
		if got, want := w.city.all()[id].number, cmp.Or(number, w.far.numberOf(id.String())); got != want || got == "" {
			t.Errorf("the city has number %q, want %q", got, want)
		}
		if err := w.targets.Decide(t.Context(), "operator", target.ID, id, ""); err == nil {
			t.Error("a report with a number was sent again")
		}
	}
}

// Updates from before the number was known come back afterwards, however long that took.
func TestUpdatesFromBeforeTheNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.far.blind = true
	target := w.target(nil)
	id := w.city.add("pending", 2)
	w.far.bad = func() string { return "fail after" }
	poller := w.poller()
	w.poll(poller)
	w.start()
	w.waitFor(`select state = 'dead' from deliveries`)
	w.exec(`update open311_requests set sent_at = now() - interval '2 hours'`)
	w.far.update(id.String(), "in_progress", "on our way")
	w.far.updates[0].At = time.Now().Add(-time.Hour).Format(time.RFC3339)
	w.poll(poller)
	if err := w.targets.Decide(t.Context(), "operator", target.ID, id, w.far.numberOf(id.String())); err != nil {
		t.Fatal(err)
	}
	w.waitFor(`select state = 'done' from deliveries`)
	w.poll(poller)
	if got, want := strings.Join(w.city.all()[id].updates, ", "), "IN_PROGRESS on our way"; got != want {
		t.Errorf("updates %q, want %q", got, want)
	}
}

// An update that is in a list twice, at the end of a page and at the beginning of the next,
// does not hide those behind it.
func TestUpdatesOfSeveralPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.target(nil)
	id, other := w.city.add("pending", 2), uuid.NewString()
	poller := w.poller()
	w.poll(poller)
	w.start()
	w.waitFor(`select state = 'done' from deliveries`)
	w.far.file(other) // of nobody here
	for range farPage - 1 {
		w.far.update(other, "in_progress", "")
	}
	w.far.update(id.String(), "in_progress", "on our way")
	w.far.updates = append(w.far.updates, w.far.updates[farPage-1])
	w.far.update(id.String(), "fixed", "done")
	w.poll(poller)
	if got, want := strings.Join(w.city.all()[id].updates, ", "), "IN_PROGRESS on our way, FIXED done"; got != want {
		t.Errorf("updates %q, want %q", got, want)
	}
}

// Workers send to one target and read it at the same time: each report is there once, and each
// update came back once and in order.
func TestSeveralWorkersShareATarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.target(nil)
	ids := make([]uuid.UUID, 60)
	for i := range ids {
		ids[i] = w.city.add("pending", 2)
	}
	turn := 0
	w.far.bad = func() string {
		turn++
		return map[int]string{0: "lose", 3: "fail after", 5: "busy"}[turn%7]
	}
	read := func() {
		var polls sync.WaitGroup
		for range 3 {
			poller := w.poller()
			polls.Go(func() {
				for range 5 {
					_, _ = w.pool.Exec(t.Context(), `update open311_targets set polled_at = null`)
					if err := poller.Poll(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		polls.Wait()
	}
	read()
	for range 3 {
		w.start()
	}
	w.waitFor(`select count(*) = 60 from deliveries where state = 'done'`)
	for _, id := range ids {
		w.far.update(id.String(), "in_progress", "on our way")
		w.far.update(id.String(), "fixed", "done")
	}
	read()
	for _, id := range ids {
		if got := w.far.filed()[id.String()]; got != 1 {
			t.Errorf("the target has a report %d times, want once", got)
		}
		if got, want := strings.Join(w.city.all()[id].updates, ", "), "IN_PROGRESS on our way, FIXED done"; got != want {
			t.Errorf("updates %q, want %q", got, want)
		}
	}
}

// Beyond the limit of its connection a poll waits for its turn.
func TestTheConnectionIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.target(nil)
	w.city.add("pending", 2)
	w.city.busy = 2
	w.poll(w.poller())
	w.waitFor(`select count(*) = 1 from deliveries`)
}

// A target that answers with a token is asked for the number later.
func TestATokenBecomesANumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.far.tokens = true
	w.target(nil)
	id := w.city.add("pending", 2)
	w.poll(w.poller())
	w.start()
	w.waitFor(`select token <> '' from open311_requests`)
	w.exec(`update deliveries set due_at = now()`)
	w.waitFor(`select state = 'done' from deliveries`)
	if got, want := w.city.all()[id].number, w.far.numberOf(id.String()); got != want || got == "" {
		t.Errorf("the city has number %q, want %q", got, want)
	}
}

// Nothing of a person leaves, and photos only of reports that everybody sees.
func TestNothingOfAPersonIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.target(nil)
	shown, private := w.city.add("pending", 2), w.city.add("pending", 2)
	w.city.change(private, func(r *cityReport) { r.Visibility = "officials" })
	w.poll(w.poller())
	w.start()
	w.waitFor(`select count(*) = 2 from deliveries where state = 'done'`)
	allowed := []string{"api_key", "attribute[asset]", "attribute[cityconnect_id]", "attribute[title]", "description", "jurisdiction_id", "lat", "long", "media_url", "service_code"}
	for id, form := range w.far.forms() {
		for name := range form {
			if !slices.Contains(allowed, name) {
				t.Errorf("sent %s", name)
			}
		}
		if got, want := len(form["media_url"]) > 0, id == shown.String(); got != want {
			t.Errorf("media_url is sent: %t, want %t", got, want)
		}
	}
}

// Reports that the department has no more, or that were closed before, are not sent.
func TestAReportThatLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.target(nil)
	gone, closed := w.city.add("pending", 2), w.city.add("pending", 2)
	w.city.add("pending", 3)  // of a category that is not sent
	w.city.add("resolved", 2) // and one that was closed before
	w.poll(w.poller())
	w.city.change(gone, func(r *cityReport) { r.gone = true })
	w.city.change(closed, func(r *cityReport) { r.Status = "resolved" })
	w.start()
	w.waitFor(`select count(*) = 2 from deliveries where state = 'cancelled'`)
	w.exec(`update open311_requests set created_at = now() - interval '1 day'`)
	if got := w.far.filed(); len(got) != 0 || len(w.differences()) != 0 {
		t.Errorf("filed %v with differences %+v, want none", got, w.differences())
	}
	w.city.change(gone, func(r *cityReport) { r.gone = false }) // it is forwarded back
	w.poll(w.poller())
	w.waitFor(`select count(*) = 1 from deliveries where state = 'done'`)
}

// A restored database does not know what was sent since: nothing is sent again that has a
// number of the target.
func TestARestoredDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.target(nil)
	id := w.city.add("pending", 2)
	w.poll(w.poller())
	w.start()
	w.waitFor(`select state = 'done' from deliveries`)
	w.exec(`delete from open311_requests`)
	w.exec(`delete from deliveries`)
	w.poll(w.poller())
	w.waitFor(`select state = 'done' from deliveries`)
	w.waitFor(`select number = '` + w.far.numberOf(id.String()) + `' from open311_requests`)
	if got := w.far.filed()[id.String()]; got != 1 {
		t.Errorf("the target has it %d times, want once", got)
	}
}

// Words of the target mean statuses by the operator's table, what report-service refuses
// shows as a difference, and so does a number that the target does not know.
func TestDifferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.target(func(target *open311.Target) { target.Statuses = map[string]string{"crew_booked": "action_scheduled"} })
	a, b, c := w.city.add("pending", 2), w.city.add("pending", 2), w.city.add("pending", 2)
	poller := w.poller()
	w.poll(poller)
	w.start()
	w.waitFor(`select count(*) = 3 from deliveries where state = 'done'`)
	w.far.update(a.String(), "Crew booked", "on Monday")
	w.far.update(b.String(), "lunch", "we eat")
	w.far.update(c.String(), "fixed", "refuse me")
	w.poll(poller)
	w.poll(poller)
	all := w.city.all()
	if got, want := fmt.Sprint(all[a].updates, all[b].updates, all[c].updates), "[ACTION_SCHEDULED on Monday] [INTERNAL_REFERRAL we eat] []"; got != want {
		t.Errorf("updates %s, want %s", got, want)
	}
	w.exec(`update open311_requests set our_since = now() - interval '2 hours', their_since = now() - interval '2 hours'`)
	w.far.forget(a.String())
	w.exec(`update open311_requests set checked_at = null`)
	w.poll(poller)
	got := make(map[uuid.UUID]open311.Kind)
	for _, d := range w.differences() {
		got[d.Report] = d.Kind
	}
	if want := map[uuid.UUID]open311.Kind{a: open311.MissingNumber, b: open311.OtherStatus, c: open311.OtherStatus}; !maps.Equal(got, want) {
		t.Errorf("differences %v, want %v", got, want)
	}
}

// An update that has words alone leaves the target's status as it was.
func TestWordsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.target(func(target *open311.Target) { target.Statuses = map[string]string{"lunch": "internal_referral"} })
	a, b := w.city.add("pending", 2), w.city.add("pending", 2)
	poller := w.poller()
	w.poll(poller)
	w.start()
	w.waitFor(`select count(*) = 2 from deliveries where state = 'done'`)
	w.far.update(a.String(), "lunch", "we eat")
	w.far.update(b.String(), "fixed", "refuse me")
	w.poll(poller)
	w.far.update(b.String(), "", "we look")
	w.poll(poller)
	all := w.city.all()
	if got, want := fmt.Sprint(all[a].updates, all[b].updates), "[INTERNAL_REFERRAL we eat] [INTERNAL_REFERRAL we look]"; got != want {
		t.Errorf("updates %s, want %s", got, want)
	}
	w.exec(`update open311_requests set our_since = now() - interval '2 hours', their_since = now() - interval '2 hours'`)
	if got := w.differences(); len(got) != 1 || got[0].Report != b || got[0].TheirStatus != "fixed" {
		t.Errorf("differences %+v, want that of the report that is fixed there", got)
	}
}

// A target with a second key gets the statuses that officials of the city gave, once each and
// however often it is polled. What came from it is not sent back, and what is in its list of
// that is not handed on. What it refuses is a difference.
func TestStatusesOfOfficialsAreSent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		key, behaviour string
		silent         bool // it has said nothing before
		sent, differs  bool
	}{
		"it takes updates":           {key: "updates", sent: true},
		"an answer was lost":         {key: "updates", behaviour: "lose", sent: true},
		"it was away, and silent":    {key: "updates", behaviour: "busy", silent: true, sent: true},
		"it refuses one":             {key: "updates", behaviour: "refuse", differs: true},
		"it has no key for updates":  {differs: true},
		"it no longer knows the one": {key: "updates", behaviour: "gone", differs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.target(func(target *open311.Target) { target.UpdateKey = tt.key })
			id := w.city.add("pending", 2)
			poller := w.poller()
			w.poll(poller)
			w.start()
			w.waitFor(`select state = 'done' from deliveries`)
			var handedOn []string
			if !tt.silent {
				w.far.update(id.String(), "in_progress", "on our way")
				handedOn = []string{"IN_PROGRESS on our way"}
				w.poll(poller)
			}
			w.city.change(id, func(r *cityReport) { r.move("resolved", "Done", "") })
			w.far.mu.Lock()
			w.far.behaviour = tt.behaviour
			w.far.mu.Unlock()
			if tt.behaviour == "lose" || tt.behaviour == "busy" {
				w.exec(`update open311_targets set polled_at = null`)
				_ = poller.Poll(t.Context())
			}
			for range 3 {
				w.poll(poller)
			}
			var want []string
			if tt.sent {
				want = []string{"updates FIXED Done"}
			}
			if got := w.far.statuses; !slices.Equal(got, want) {
				t.Errorf("the target got %q, want %q", got, want)
			}
			if got := w.city.all()[id].updates; !slices.Equal(got, handedOn) {
				t.Errorf("the city has updates %q, want %q", got, handedOn)
			}
			w.exec(`update open311_requests set our_since = our_since - interval '2 hours', their_since = their_since - interval '2 hours'`)
			if got := len(w.differences()) > 0; got != tt.differs {
				t.Errorf("the two sides differ: %t, want %t", got, tt.differs)
			}
		})
	}
}

// world is a city, a target and a database.
type world struct {
	t       *testing.T
	pool    *pgxpool.Pool
	store   *postgres.DB
	targets *open311.Store
	keys    *event.Keyring
	city    *fakeCity
	far     *fakeTarget
	log     zerolog.Logger
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool := pgtest.Notification(t)
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, pool: pool, store: postgres.New(pool, postgres.Options{}), targets: open311.NewStore(pool, false), keys: keys, log: zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.ErrorLevel),
		city: &fakeCity{reports: make(map[uuid.UUID]*cityReport)}, far: &fakeTarget{requests: make(map[string]*filedRequest)},
	}
	w.city.server, w.far.server = httptest.NewServer(w.city), httptest.NewServer(w.far)
	t.Cleanup(w.city.server.Close)
	t.Cleanup(func() { w.far.server.CloseClientConnections(); w.far.server.Close() })
	return w
}

func (w *world) target(with func(*open311.Target)) open311.Target {
	w.t.Helper()
	target := open311.Target{
		ID: uuid.Must(uuid.NewV7()), Name: "Works", URL: w.far.server.URL, Jurisdiction: "works.example.org", Key: "secret", ConnectionKey: connectionKey,
		Services: map[int32]string{2: "LIGHT"}, Statuses: map[string]string{},
	}
	if with != nil {
		with(&target)
	}
	if err := target.Check(w.rules(), ""); err != nil {
		w.t.Fatal(err)
	}
	target.Seal(w.keys)
	created, err := w.targets.Save(w.t.Context(), "operator", uuid.Nil, func(t *open311.Target) error {
		target.Enabled = true
		*t = target
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return created
}

func (w *world) rules() webhook.Rules {
	return webhook.Rules{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
}

func (w *world) sender() *open311.Sender {
	return open311.NewSender(w.targets, w.keys, webhook.NewClient(w.rules(), nil, nil), w.city.server.URL, "https://city.example.org/", w.log)
}

// start sends what is due until the test ends. Pauses of the schedule are skipped.
func (w *world) start() {
	sender := w.sender()
	cfg := open311.Ledger(16, time.Second, 120*time.Hour)
	cfg.Schedule = make(ledger.Schedule, 20*len(cfg.Schedule))
	d := ledger.New(cfg, sender, w.store.Ledger, prometheus.NewRegistry(), w.log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	running.Go(func() { // time flies
		for backoff.Sleep(ctx, 100*time.Millisecond) == nil {
			_, _ = w.pool.Exec(ctx, `update open311_requests set sent_at = sent_at - interval '150 seconds' where sent_at < now() - interval '1500 milliseconds' and sent_at > now() - interval '100 seconds' and number = ''`)
			_, _ = w.pool.Exec(ctx, `update deliveries set due_at = now() where state = 'waiting' and due_at > now() and last_class <> 'token'`)
			_, _ = w.pool.Exec(ctx, `update lanes set open_until = null, failures = 0`)
			_ = backoff.Sleep(ctx, 100*time.Millisecond)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

func (w *world) poller() *open311.Poller {
	return open311.NewPoller(w.sender(), prometheus.NewRegistry())
}

func (w *world) poll(p *open311.Poller) {
	w.t.Helper()
	w.exec(`update open311_targets set polled_at = null`)
	if err := p.Poll(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	var problem string
	if err := w.pool.QueryRow(w.t.Context(), `select problem from open311_targets`).Scan(&problem); err != nil || problem != "" {
		w.t.Fatalf("problem %q (error %v)", problem, err)
	}
}

func (w *world) differences() []open311.Difference {
	w.t.Helper()
	d, err := w.targets.Differences(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) exec(sql string) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) waitFor(sql string) {
	w.t.Helper()
	eventually.NothingMissing(w.t, sql, func() string {
		var is *bool
		if err := w.pool.QueryRow(w.t.Context(), sql).Scan(&is); err != nil {
			return err.Error()
		}
		if is == nil || !*is {
			var row []byte
			_ = w.pool.QueryRow(w.t.Context(), `select json_agg(row_to_json(d)) from (select state, attempts, last_class, last_error from deliveries where state <> 'done' limit 5) d`).Scan(&row)
			return string(row) + " remain"
		}
		return ""
	})
}

// A fakeCity is report-service as a connection sees it. The real one is part of the run of
// two stacks in scripts/e2e.
type fakeCity struct {
	server  *httptest.Server
	mu      sync.Mutex
	reports map[uuid.UUID]*cityReport
	busy    int // so many requests are too many
}

type cityReport struct {
	reportapi.ConnectedReport
	gone    bool
	number  string
	updates []string
	ids     []string
	history []reportapi.HistoryEntry
}

// move gives r another status, by an official if department is empty.
func (r *cityReport) move(status reportapi.Status, note, department string) {
	r.history = append(r.history, reportapi.HistoryEntry{
		FromStatus: r.Status, ToStatus: status, Note: note, DepartmentName: department, Version: int64(len(r.history) + 2), ChangedAt: time.Now(),
	})
	r.Status = status
}

func (c *fakeCity) add(status string, category int32) uuid.UUID {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := uuid.Must(uuid.NewV7())
	lat, long := -6.9, 107.6
	c.reports[id] = &cityReport{ConnectedReport: reportapi.ConnectedReport{
		ID: id, Title: "Dark crossing", Description: "The lamp & its pole", CategoryID: category, Status: reportapi.Status(status), Latitude: &lat, Longitude: &long,
		Asset: "lamps/L-1", Address: "Jalan Asia Afrika 1", Visibility: "public", Photos: []uuid.UUID{uuid.New()},
	}}
	return id
}

func (c *fakeCity) change(id uuid.UUID, change func(*cityReport)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c.reports[id])
}

func (c *fakeCity) all() map[uuid.UUID]cityReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[uuid.UUID]cityReport)
	for id, r := range c.reports {
		all[id] = *r
	}
	return all
}

func (c *fakeCity) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = r.ParseForm()
	part := strings.Split(r.URL.Path, "/")
	switch {
	case c.busy > 0:
		c.busy--
		w.WriteHeader(http.StatusTooManyRequests)
	case r.Header.Get("Authorization") != "Bearer "+connectionKey && r.Form.Get("api_key") != connectionKey:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/reports/connection":
		page := reportapi.ConnectedReports{}
		ids := slices.SortedFunc(maps.Keys(c.reports), func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		for _, id := range ids {
			if c.reports[id].gone || id.String() <= r.Form.Get("cursor") {
				continue
			}
			page.Reports = append(page.Reports, c.reports[id].ConnectedReport)
			if len(page.Reports) == 100 {
				page.NextCursor = id.String()
				break
			}
		}
		_ = json.NewEncoder(w).Encode(page)
	case part[1] == "reports":
		report := c.reports[uuid.MustParse(part[2])]
		if report.gone {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if part[3] == "connection" {
			_ = json.NewEncoder(w).Encode(report.ConnectedReport)
			return
		}
		if part[3] == "history" {
			_ = json.NewEncoder(w).Encode(reportapi.History{History: report.history})
			return
		}
		var ref reportapi.NewExternalRef
		_ = json.NewDecoder(r.Body).Decode(&ref)
		report.number = ref.Number
		report.ExternalRef = &reportapi.ExternalRef{Number: ref.Number, State: ref.State}
		w.WriteHeader(http.StatusNoContent)
	default:
		report := c.reports[uuid.MustParse(r.Form.Get("service_request_id"))]
		if strings.Contains(r.Form.Get("description"), "refuse") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if !slices.Contains(report.ids, r.Form.Get("update_id")) {
			report.ids = append(report.ids, r.Form.Get("update_id"))
			report.updates = append(report.updates, r.Form.Get("status")+" "+r.Form.Get("description"))
			if to, ok := map[string]reportapi.Status{"FIXED": "resolved", "IN_PROGRESS": "in_progress", "ACTION_SCHEDULED": "in_progress"}[r.Form.Get("status")]; ok {
				report.move(to, r.Form.Get("description"), "Works")
			}
		}
		fmt.Fprint(w, `[{"update_id":"1"}]`)
	}
}

// farPage is how many entries a page of a list of updates has.
const farPage = 1000

// A fakeTarget is the system of a department, which behaves as such systems do.
type fakeTarget struct {
	server  *httptest.Server
	bad     func() string // how it behaves this time
	blind   bool          // it has no list of requests
	repeats bool
	tokens  bool
	page    int // how many entries a list of requests has; 0 for all, -1 has no pages, -2 forbids them

	mu       sync.Mutex
	requests map[string]*filedRequest // by the id of the report
	updates  []open311.Update
	last     int

	behaviour string   // when it gets a status
	statuses  []string // that it got, each once
	statusIDs []string
}

type filedRequest struct {
	number string
	times  int
	form   map[string][]string
	status string
	gone   bool
}

func (f *fakeTarget) file(report string) *filedRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fileLocked(report)
}

func (f *fakeTarget) fileLocked(report string) *filedRequest {
	if r, ok := f.requests[report]; ok {
		if !f.repeats {
			r.times++
		}
		return r
	}
	f.last++
	f.requests[report] = &filedRequest{number: fmt.Sprintf("W-%d", 1000+f.last), times: 1, status: "open"}
	return f.requests[report]
}

func (f *fakeTarget) filed() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	times := make(map[string]int)
	for id, r := range f.requests {
		times[id] = r.times
	}
	return times
}

func (f *fakeTarget) forms() map[string]map[string][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	forms := make(map[string]map[string][]string)
	for id, r := range f.requests {
		forms[id] = r.form
	}
	return forms
}

func (f *fakeTarget) numberOf(report string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.requests[report]; ok {
		return r.number
	}
	return ""
}

func (f *fakeTarget) forget(report string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests[report].gone = true
}

// update says something of a report.
func (f *fakeTarget) update(report, status, words string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.requests[report]
	f.updates = append(f.updates, open311.Update{
		ID: strconv.Itoa(len(f.updates) + 1), Number: r.number, Status: status, Description: words,
		At: time.Now().Add(time.Duration(len(f.updates)) * time.Millisecond).UTC().Format(time.RFC3339Nano),
	})
	if status == "fixed" {
		r.status = "closed"
	}
}

func (f *fakeTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	switch path := r.URL.Path; {
	case path == "/requests.xml" && r.Method == http.MethodPost:
		f.post(w, r)
	case strings.HasPrefix(path, "/tokens/"):
		fmt.Fprintf(w, `<service_requests><request><service_request_id>%s</service_request_id><token>t</token></request></service_requests>`,
			f.numberOf(strings.TrimSuffix(strings.TrimPrefix(path, "/tokens/"), ".xml")))
	case path == "/requests.xml" && f.blind:
		w.WriteHeader(http.StatusInternalServerError) // as open311-adapter does
	case path == "/requests.xml" && f.page < 0 && r.Form.Has("page"):
		w.WriteHeader(map[int]int{-1: http.StatusBadRequest, -2: http.StatusForbidden}[f.page])
	case path == "/requests.xml":
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprint(w, `<?xml version="1.0" encoding="utf-8"?><service_requests>`)
		asked := strings.Split(r.Form.Get("service_request_id"), ",")
		ids := slices.SortedFunc(maps.Keys(f.requests), func(a, b string) int { return cmp.Compare(f.requests[a].number, f.requests[b].number) })
		if f.page == -2 {
			ids = ids[:2]
		}
		if f.page > 0 {
			page, _ := strconv.Atoi(cmp.Or(r.Form.Get("page"), "1"))
			ids = ids[min(len(ids), (page-1)*f.page):min(len(ids), page*f.page)]
		}
		for _, id := range ids {
			if r := f.requests[id]; !r.gone && (asked[0] == "" || slices.Contains(asked, r.number)) {
				fmt.Fprintf(w, `<request><service_request_id>%s</service_request_id><status>%s</status><extended_attributes><cityconnect_id>%s</cityconnect_id></extended_attributes></request>`, r.number, r.status, id)
			}
		}
		fmt.Fprint(w, `</service_requests>`)
	case path == "/servicerequestupdates.xml" && r.Method == http.MethodPost:
		f.take(w, r)
	case path == "/servicerequestupdates.xml":
		f.mu.Lock()
		defer f.mu.Unlock()
		list := slices.DeleteFunc(slices.Clone(f.updates), func(u open311.Update) bool { return u.At < r.Form.Get("start_date") })
		page, _ := strconv.Atoi(cmp.Or(r.Form.Get("page"), "1"))
		list = list[min(len(list), (page-1)*farPage):]
		_ = xml.NewEncoder(w).EncodeElement(struct {
			Updates []open311.Update `xml:"request_update"`
		}{list[:min(len(list), farPage)]}, xml.StartElement{Name: xml.Name{Local: "service_request_updates"}})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// take keeps an update, which is in its list from then on.
func (f *fakeTarget) take(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	behaviour := f.behaviour
	f.mu.Unlock()
	switch behaviour {
	case "refuse":
		w.WriteHeader(http.StatusBadRequest)
		return
	case "gone":
		w.WriteHeader(http.StatusNotFound)
		return
	case "busy":
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behaviour = ""
	if behaviour == "busy" {
		return
	}
	if !slices.Contains(f.statusIDs, r.Form.Get("update_id")) {
		f.statusIDs = append(f.statusIDs, r.Form.Get("update_id"))
		f.statuses = append(f.statuses, strings.Join([]string{r.Form.Get("api_key"), r.Form.Get("status"), r.Form.Get("description")}, " "))
		f.updates = append(f.updates, open311.Update{
			ID: "theirs-" + strconv.Itoa(len(f.statuses)), Number: r.Form.Get("service_request_id"), Status: r.Form.Get("status"), Description: r.Form.Get("description"),
			At: time.Now().UTC().Format(time.RFC3339),
		})
	}
	if behaviour == "lose" {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, `<service_request_updates><request_update><update_id>1</update_id></request_update></service_request_updates>`)
}

func (f *fakeTarget) post(w http.ResponseWriter, r *http.Request) {
	behaviour := ""
	if f.bad != nil {
		f.mu.Lock()
		behaviour = f.bad()
		f.mu.Unlock()
	}
	switch behaviour {
	case "fail":
		w.WriteHeader(http.StatusInternalServerError)
		return
	case "busy":
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case "refuse":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `<errors><error><code>400</code><description>no such service_code</description></error></errors>`)
		return
	case "hang":
		<-r.Context().Done()
		return
	}
	id := r.Form.Get("attribute[cityconnect_id]")
	f.mu.Lock()
	filed := f.fileLocked(id)
	filed.form = r.Form
	f.mu.Unlock()
	switch behaviour {
	case "fail after":
		w.WriteHeader(http.StatusBadGateway)
		return
	case "hang after":
		<-r.Context().Done()
		return
	case "lose":
		panic(http.ErrAbortHandler)
	}
	if f.tokens {
		fmt.Fprintf(w, `<service_requests><request><token>%s</token></request></service_requests>`, id)
		return
	}
	fmt.Fprintf(w, `<service_requests><request><service_request_id>%s</service_request_id></request></service_requests>`, filed.number)
}
