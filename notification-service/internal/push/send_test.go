package push_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
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
	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/push/pushtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// shown is what the page's service worker has to show.
type shown struct{ Title, Body, Lang, Tag, URL string }

func read(t *testing.T, p pushtest.Push) (s shown) {
	t.Helper()
	if err := json.Unmarshal(p.Text, &s); err != nil {
		t.Fatalf("%v in %s", err, p.Text)
	}
	return s
}

// A new status is pushed once to each device of its reader, as each device asked: in
// its language, signed, and as long as any other. Who did not ask is pushed nothing.
func TestPushOfAStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	phone, desk := w.device("ann", wording.Indonesian), w.device("ann", wording.English)
	w.device("bob", wording.English)
	w.exec(`update push_preferences set kinds = '{}' where stream_id = (select id from streams where name = 'user:bob')`)
	w.start()
	report := w.status("ann", "Lampu padam", true)
	w.status("bob", "Lamp", true)
	w.status("eve", "Lamp", true)
	w.vote("ann", "Lampu padam") // which nobody asked for
	if n := w.number(`select count(*) from deliveries where channel = 'push' and report_id is null and body = ''
		and due_at > now() + interval '20 seconds' and not_after > now() + interval '23 hours'`); n != 2 {
		t.Fatalf("%d pushes wait, want one a device", n)
	}
	w.due()
	pushes := w.service.WaitFor(2)
	w.waitFor(`select count(*) from deliveries where state = 'done'`, 2)
	byDevice := make(map[string]pushtest.Push)
	for _, p := range pushes {
		byDevice[p.Endpoint] = p
		if p.Size != 3072 || p.TTL == "" || p.Urgent != "normal" || p.Subject != "mailto:operations@city.example.org" || p.Key != w.config.PublicKey() {
			t.Errorf("push %+v", p)
		}
	}
	id := read(t, byDevice[phone.Endpoint])
	en := read(t, byDevice[desk.Endpoint])
	if id.Title != "Lampu padam" || id.Body != "Sekarang dikerjakan\nCanary note" || id.Lang != "id" || id.URL != "/reports/"+report.String() {
		t.Errorf("in Indonesian: %+v", id)
	}
	if en.Title != "Lampu padam" || en.Body != "Now in progress\nCanary note" || en.Lang != "en" || en.URL != "/reports/"+report.String() {
		t.Errorf("in English: %+v", en)
	}
	if id.Tag == en.Tag || len(id.Tag) != 32 || id.Tag != byDevice[phone.Endpoint].Topic {
		t.Errorf("tags %q and %q, topic %q: want those of two devices", id.Tag, en.Tag, byDevice[phone.Endpoint].Topic)
	}
	if w.number(`select count(*) from push_subscriptions where last_ok_at is not null`) != 2 {
		t.Error("the devices do not know that they were used")
	}
	// A newer status takes the place of the other, and a vote does not.
	w.exec(`update push_preferences set kinds = '{report.status.updated,report.vote.received}'`)
	w.statusOf(report, "ann", "Lampu padam", true)
	w.due()
	w.service.WaitFor(4)
	w.voteOn(report, "ann", strings.Repeat("Ä", 200))
	w.due()
	topics := make(map[string]int)
	for _, p := range w.service.WaitFor(6) {
		topics[p.Topic]++
		if s := read(t, p); s.Body == "3 votes" && (s.Title != strings.Repeat("Ä", 119)+"…" || p.Size != 3072) {
			t.Errorf("vote %+v in %d bytes", s, p.Size)
		}
	}
	if len(topics) != 4 {
		t.Errorf("topics %v, want one a device and kind", topics)
	}
}

// A refusal by a push service is in the log once it has refused many.
func TestRefusalsOfMany(t *testing.T) {
	t.Parallel()
	for status, says := range map[int]string{403: "check PUSH_VAPID_KEY", 413: "a push service refuses pushes"} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.service.Script(func(int) pushtest.Answer { return pushtest.Answer{Status: status} })
			for i := range 2 * crowd.Size {
				user := fmt.Sprint("user", i)
				w.device(user, wording.English)
				w.status(user, "Pothole", true)
			}
			w.start()
			w.due()
			eventually.True(t, "the log says "+says, func() bool { return strings.Contains(w.log.String(), says) })
		})
	}
}

// Each answer has its consequence, for the push and for the device. None of it is
// in a table or a log: it may quote the address.
func TestAnswers(t *testing.T) {
	t.Parallel()
	soon := http.Header{"Retry-After": {"3600"}}
	for _, tt := range []struct {
		name    string
		answer  pushtest.Answer
		class   string
		state   string // of the delivery
		retries int
		devices int
	}{
		{"gone", pushtest.Answer{Status: 410}, "gone", "cancelled", 0, 0},
		{"unknown", pushtest.Answer{Status: 404}, "gone", "cancelled", 0, 0},
		{"too many", pushtest.Answer{Status: 429, Header: soon}, "4xx", "waiting", 1, 1},
		{"away", pushtest.Answer{Status: 500}, "5xx", "waiting", 1, 1},
		{"busy", pushtest.Answer{Status: 503, Header: soon}, "5xx", "waiting", 1, 1},
		{"another key", pushtest.Answer{Status: 403}, "vapid", "waiting", 1, 1},
		{"no key", pushtest.Answer{Status: 401}, "vapid", "waiting", 1, 1},
		{"too large", pushtest.Answer{Status: 413}, "refused", "dead", 0, 1},
		{"bad", pushtest.Answer{Status: 400}, "refused", "dead", 0, 1},
		{"elsewhere", pushtest.Answer{Status: 307, Header: http.Header{"Location": {"/send/other"}}}, "3xx", "waiting", 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			device := w.device("ann", wording.English)
			w.service.Script(func(int) pushtest.Answer { return tt.answer })
			w.start()
			w.status("ann", "Pothole", true)
			w.due()
			w.waitFor(fmt.Sprintf(`select count(*) from deliveries where last_class = '%s' and state = '%s' and retries = %d`,
				tt.class, tt.state, tt.retries), 1)
			if tt.answer.Header.Get("Retry-After") != "" {
				w.waitFor(`select count(*) from deliveries where due_at > now() + interval '59 minutes'`, 1)
			}
			if n := w.number(`select count(*) from push_subscriptions`); n != int64(tt.devices) {
				t.Errorf("%d devices are left, want %d", n, tt.devices)
			}
			if n := w.service.Asked(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			if tt.class == "vapid" && w.number(`select count(*) from lanes where failures > 0`) != 0 {
				t.Error("a key that one device does not take counts against the push service of all")
			}
			if log := w.log.String(); strings.Contains(log, "push_service") || strings.Contains(log, w.service.Host) {
				t.Errorf("the log tells of one device: %s", log)
			}
			path := strings.TrimPrefix(device.Endpoint, w.service.URL)
			for _, table := range []string{"deliveries", "delivery_attempts", "lanes", "push_subscriptions"} {
				for _, secret := range []string{path, device.P256DH, device.Auth} {
					if n := w.number(`select count(*) from `+table+` t where t::text like '%'||$1||'%'`, secret); n != 0 {
						t.Errorf("%s has the device's %q", table, secret)
					}
				}
			}
			if strings.Contains(w.log.String(), path) {
				t.Errorf("the log has the address: %s", w.log.String())
			}
		})
	}
}

// A push service that was away gets what waits; none is lost, and none doubled.
func TestServiceIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 20
	for i := range n {
		w.device(fmt.Sprintf("user%d", i), wording.English)
	}
	w.service.Script(func(n int) pushtest.Answer { return pushtest.Answer{Status: []int{500, 502, 503}[n%3]} })
	stop := w.start()
	for i := range n {
		w.status(fmt.Sprintf("user%d", i), "Pothole", true)
	}
	w.due()
	w.waitFor(`select count(*) from lanes where failures >= 5 and open_until > now()`, 1)
	stop()
	w.service.Script(nil)
	w.exec(`update lanes set open_until = null`) // its circuit is probed in half a minute, or now
	w.due()
	w.start()
	w.waitFor(`select count(*) from deliveries where state = 'done'`, n)
	for _, says := range []string{"circuit opened", "circuit closed"} {
		if got := strings.Count(w.log.String(), says); got != 1 {
			t.Errorf("%q is logged %d times, want once: %s", says, got, w.log.String())
		}
	}
	if got := w.service.Taken(); len(got) != n {
		t.Errorf("%d pushes, want %d", len(got), n)
	}
}

// A reader who has read it on the page, has turned it off or has removed the device
// gets no push; during quiet hours it waits.
func TestWhatIsNotSent(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]string{
		"read":      `insert into read_marks (reader, stream_id, seq) select id, id, last_seq from streams on conflict (reader, stream_id) do update set seq = excluded.seq`,
		"unwanted":  `update push_preferences set kinds = '{}'`,
		"no_device": `delete from push_subscriptions`,
		"empty":     `delete from notifications`,
		"host":      "",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.device("ann", wording.English)
			w.status("ann", "Pothole", true)
			if change == "" {
				w.config.AllowHosts = []string{"fcm.googleapis.com"}
			} else {
				w.exec(change)
			}
			w.due()
			w.start()
			w.waitFor(`select count(*) from deliveries where state = 'cancelled' and last_class = '`+reason+`' and attempts = 0`, 1)
			if n := w.service.Asked(); n != 0 {
				t.Errorf("%d requests, want none", n)
			}
		})
	}
	t.Run("quiet hours", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.device("ann", wording.English)
		contact := email.Contact{ID: uuid.New(), Lane: "host", Language: wording.English, Zone: "UTC"}
		if _, err := w.store.Contacts.Set(t.Context(), notification.Reader{UserID: "ann"}, contact, [][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
		w.exec(`update contacts set quiet_from = (m + 1435) % 1440, quiet_to = (m + 60) % 1440
			from (select (extract(hour from now() at time zone 'UTC') * 60 + extract(minute from now() at time zone 'UTC'))::int as m) as clock`)
		w.status("ann", "Pothole", true)
		w.due()
		w.start()
		w.waitFor(`select count(*) from deliveries where state = 'waiting' and last_class = 'quiet_hours' and attempts = 0
			and due_at between now() + interval '50 minutes' and now() + interval '61 minutes'`, 1)
		w.exec(`update contacts set quiet_from = null, quiet_to = null`)
		w.due()
		w.service.WaitFor(1)
	})
}

// Only reporters who chose so on filing get pushes about an anonymous report. The
// push says that there is news, and nothing of the report or its reporter leaves the
// database, not even encrypted.
func TestAnonymousReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var devices []pushtest.Subscription
	for _, user := range []string{"canary-user", "other-user"} {
		devices = append(devices, w.device(user, wording.English))
	}
	w.exec(`update push_preferences set kinds = '{report.status.updated,report.vote.received}'`)
	chosen, silent := uuid.New(), uuid.New()
	for _, user := range []string{"canary-user", "other-user"} { // the other's consent opens nothing
		if err := w.store.Contacts.SetConsent(t.Context(), notification.Reader{UserID: user}, chosen, true); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.statusOf(chosen, "canary-user", "Canary title", false)
	w.statusOf(silent, "canary-user", "Canary title", false)
	w.statusOf(uuid.New(), "other-user", "Canary title", false)
	if got := w.number(`select count(*) from deliveries`); got != 1 {
		t.Fatalf("%d pushes wait, want the one that was chosen", got)
	}
	w.due()
	p := w.service.WaitFor(1)[0]
	w.waitFor(`select count(*) from deliveries where state = 'done'`, 1)
	if got := read(t, p); got.Title != "There is news on one of your reports" || got.Body != "" || got.URL != "/mine" {
		t.Errorf("push %+v", got)
	}
	everything := string(p.Text) + p.Topic + p.Endpoint + w.log.String()
	for _, secret := range []string{"anary title", "canary-user", chosen.String(), "Canary note", "in progress", "-6.5", "106.7"} {
		if strings.Contains(everything, secret) {
			t.Errorf("%q is in the push or the log:\n%s", secret, everything)
		}
	}
	for _, table := range []string{"deliveries", "delivery_attempts", "lanes", "push_subscriptions", "push_preferences"} {
		for _, secret := range []string{"anary title", "canary-user", chosen.String(), devices[0].Endpoint, devices[0].Auth} {
			if n := w.number(`select count(*) from `+table+` t where t::text like '%'||$1||'%'`, secret); n != 0 {
				t.Errorf("%s has %q", table, secret)
			}
		}
	}
	if w.number(`select count(*) from deliveries d join notifications n on d.message_id = n.message_id`) != 0 {
		t.Error("the row of the push has the id of the event, which webhooks have, too")
	}
}

// A name on the list that leads into the city's own network leads nowhere: the
// address is looked at when the connection is made.
func TestAddressIsGuarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rules = webhook.Rules{}
	w.device("ann", wording.English)
	w.start()
	w.status("ann", "Pothole", true)
	w.due()
	w.waitFor(`select count(*) from deliveries where state = 'dead' and last_class = 'address_refused'`, 1)
	if n := w.service.Asked(); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// A worker that is stopped with a push in hand leaves it to the next, under the
// same topic: what is shown twice is shown in one place.
func TestStoppedWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.device("ann", wording.English)
	w.service.Script(func(n int) pushtest.Answer { return pushtest.Answer{Hang: n == 0} })
	stop := w.start()
	w.status("ann", "Pothole", true)
	w.due()
	eventually.True(w.t, "it is under way", func() bool { return w.service.Asked() == 1 })
	stop()
	if n := w.number(`select count(*) from deliveries where state = 'waiting'`); n != 1 {
		t.Fatalf("%d wait, want the one that was under way", n)
	}
	w.due()
	w.start()
	w.service.WaitFor(1)
	w.waitFor(`select count(*) from deliveries where state = 'done'`, 1)
}

// A world is a database, a push service that answers by script, and workers.
type world struct {
	t       *testing.T
	pool    *pgxpool.Pool
	store   *postgres.DB
	keys    *push.Keys
	config  push.Config
	rules   webhook.Rules
	service *pushtest.Service
	log     logBuffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool := pgtest.Notification(t)
	ring, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, pool: pool, store: postgres.New(pool, postgres.Options{Push: true}), keys: push.NewKeys(ring), service: pushtest.New(t)}
	w.config = goodConfig(t, w.service.Host)
	w.rules = webhook.Rules{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", w.log.String())
		}
	})
	return w
}

// start starts a worker.
func (w *world) start() (stop func()) {
	w.t.Helper()
	log := zerolog.New(&w.log)
	client := webhook.NewClient(w.rules, nil, w.service.Roots())
	sender := push.NewSender(&w.config, w.store.Devices, w.keys, client, prometheus.NewRegistry(), log)
	d := ledger.New(w.config.Ledger(), sender, w.store.Ledger, prometheus.NewRegistry(), log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.Run(ctx); err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done; client.CloseIdleConnections() })
	w.t.Cleanup(stop)
	return stop
}

// device gives the user a further device.
func (w *world) device(user string, language wording.Language) pushtest.Subscription {
	w.t.Helper()
	s := w.service.Subscribe()
	d := push.Device{ID: uuid.New(), Lane: w.service.Host, Language: language, Label: "Firefox, Android"}
	d.Endpoint, d.Keys = w.keys.Seal(d.ID, push.Subscription{Endpoint: s.Endpoint, P256DH: s.P256DH, Auth: s.Auth})
	if _, _, err := w.store.Devices.Add(w.t.Context(), notification.Reader{UserID: user}, d, w.keys.EndpointHashes(s.Endpoint)); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// status applies a new status of a report of the user's.
func (w *world) status(user, title string, public bool) uuid.UUID {
	w.t.Helper()
	report := uuid.New()
	w.statusOf(report, user, title, public)
	return report
}

func (w *world) statusOf(report uuid.UUID, user, title string, public bool) {
	w.t.Helper()
	m := &event.StatusUpdate{Subject: subject(report, user, title, public), NewStatus: event.InProgress, Note: "Canary note"}
	w.apply(postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, user)})
}

func (w *world) vote(user, title string) {
	w.t.Helper()
	w.voteOn(uuid.New(), user, title)
}

func (w *world) voteOn(report uuid.UUID, user, title string) {
	w.t.Helper()
	m := &event.VoteReceived{Subject: subject(report, user, title, true), VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(3))}
	w.apply(postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, user)})
}

func subject(report uuid.UUID, user, title string, public bool) event.Subject {
	s := event.Subject{ReportID: report, ReportVersion: 2, ReportTitle: title, Timestamp: time.Now().Unix(), Latitude: new(-6.5944), Longitude: new(106.7892)}
	if public {
		s.ReporterID = user
	}
	return s
}

func (w *world) apply(m postgres.Message) {
	w.t.Helper()
	for range 2 { // the broker delivers it twice
		if _, err := w.store.Effects.Apply(w.t.Context(), "test", []postgres.Message{m}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// due has everything that waits be due now.
func (w *world) due() {
	w.t.Helper()
	w.exec(`update deliveries set due_at = now() where state = 'waiting'`)
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) number(sql string, args ...any) (n int64) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// waitFor waits until the query of one number returns want.
func (w *world) waitFor(sql string, want int) {
	w.t.Helper()
	eventually.True(w.t, fmt.Sprintf("%s: want %d", sql, want), func() bool { return w.number(sql) == int64(want) })
}

// A logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
