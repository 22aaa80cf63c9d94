package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// nowhere is an address at which nothing listens.
const nowhere = "127.0.0.1:1"

// A running is the service within the test's process.
type running struct {
	t    *testing.T
	env  map[string]string
	url  string
	stop context.CancelFunc
	done chan error
	logs *lockedBuffer
}

// environment returns that of a service at an address of its own.
func environment(t *testing.T, databaseURL, rabbitURL string) map[string]string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return map[string]string{
		"HTTP_ADDR": ln.Addr().String(), "OPERATIONS_ADDR": "127.0.0.1:0", "DATABASE_URL": databaseURL, "RABBITMQ_URL": rabbitURL,
		"RECIPIENT_KEY": event.NewKey("k1"), "AUTH_MODE": "dev", "AUTH_ISSUER": "tests", "AUTH_AUDIENCE": "tests",
		"AUTH_JWT_SECRET": strings.Repeat("secret", 6), "PHOTO_STORE": "file://" + t.TempDir(),
	}
}

// start runs the service and returns once it answers.
func start(t *testing.T, databaseURL, rabbitURL string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{t: t, stop: stop, done: make(chan error, 1), logs: new(lockedBuffer), env: environment(t, databaseURL, rabbitURL)}
	r.url = "http://" + r.getenv("HTTP_ADDR")
	go func() { r.done <- run(ctx, r.getenv, r.logs) }()
	t.Cleanup(stop)
	r.eventually("it answers", func() bool {
		status, _ := r.get("/livez")
		return status == http.StatusOK
	})
	return r
}

func (r *running) getenv(name string) string { return r.env[name] }

// end stops the service as a signal does, and expects it to end without an error.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		if err != nil {
			r.t.Errorf("run: %v\n%s", err, r.logs)
		}
	case <-time.After(eventually.Patience):
		r.t.Errorf("run does not end\n%s", r.logs)
	}
}

// eventually polls until ok, because a service sends no signal.
func (r *running) eventually(what string, ok func() bool) {
	r.t.Helper()
	eventually.NothingMissing(r.t, what, func() string {
		if ok() {
			return ""
		}
		return "not yet\n" + r.logs.String()
	})
}

func (r *running) get(path string) (int, string) {
	res, err := http.Get(r.url + path)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body) // what is missing fails the test
	return res.StatusCode, string(body)
}

func (r *running) post(path, token, body string) (int, []byte) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, answer
}

// token signs in a user of the role.
func (r *running) token(role string) string {
	r.t.Helper()
	_, answer := r.post("/dev/token", "", fmt.Sprintf(`{"name":"Ann","role":%q}`, role))
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(answer, &token); err != nil {
		r.t.Fatalf("%v in %s", err, answer)
	}
	return token.AccessToken
}

// relayState is what an operator sees of the relay.
func (r *running) relayState() (state reportapi.RelayState) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+"/admin/outbox/stats", http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token("operator"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	var stats reportapi.OutboxStats
	if err := json.NewDecoder(res.Body).Decode(&stats); err != nil {
		r.t.Fatalf("stats: status %d, %v", res.StatusCode, err)
	}
	return stats.Relay
}

// file files a report and returns the status and the answer.
func (r *running) file() (int, []byte) {
	r.t.Helper()
	return r.post("/reports", r.token("resident"), `{"title":"Dark lamp","description":"","category_id":2,"privacy_level":"public"}`)
}

// A lockedBuffer takes the log of several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestFromRequestToBroker(t *testing.T) {
	t.Parallel()
	rabbitURL := rabbittest.Vhost(t)
	r := start(t, pgtest.Report(t).Config().ConnString(), rabbitURL)
	r.eventually("the relay is connected", func() bool {
		_, body := r.get("/readyz")
		return strings.Contains(body, `"relay":"up"`)
	})
	deliveries := bind(t, rabbitURL)
	status, answer := r.file()
	var rep struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(answer, &rep); err != nil || status != http.StatusCreated {
		t.Fatalf("status %d, %v in %s", status, err, answer)
	}
	select {
	case d := <-deliveries:
		message, err := event.Decode(event.Key(d.Type), d.Body)
		if err != nil {
			t.Fatalf("the message breaks the contract: %v", err)
		}
		if about := message.About(); about.ReportID.String() != rep.ID || about.ReportVersion != 1 || d.RoutingKey != string(event.ReportCreatedKey) {
			t.Errorf("message %s about %+v, want that of %s", d.RoutingKey, about, rep.ID)
		}
	case <-time.After(eventually.Patience):
		t.Fatalf("no message\n%s", r.logs)
	}
	r.eventually("an operator sees what was published", func() bool { return r.relayState().PublishedPerS > 0 })
	if s := r.relayState(); s.Connects != 1 || s.ConfirmP50Ms <= 0 || s.ConfirmP99Ms < s.ConfirmP50Ms || s.Returned+s.Nacked != 0 || s.BlockedSeconds != 0 {
		t.Errorf("the relay's state %+v, want one connection, how long the confirm took, and nothing refused", s)
	}
	r.eventually("the healthcheck succeeds", func() bool { // its answer is kept for a second
		return service.Healthcheck(t.Context(), r.getenv("HTTP_ADDR")) == nil
	})
	r.end()
	if err := service.Healthcheck(t.Context(), r.getenv("HTTP_ADDR")); err == nil {
		t.Error("healthcheck of a service that ended succeeded")
	}
}

// bind reads what the relay publishes about reports.
func bind(t *testing.T, rabbitURL string) <-chan amqp.Delivery {
	t.Helper()
	conn, err := amqp.Dial(rabbitURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(q.Name, "report.#", event.Topology{}.Exchange(), false, nil); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return deliveries
}

// A request that is in hand when the service is stopped is answered, and what
// it asked for is done.
func TestStopAnswersRequestsInHand(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	hold, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Rollback(context.WithoutCancel(t.Context()))
	if _, err := hold.Exec(t.Context(), `lock table outbox_messages in share mode`); err != nil {
		t.Fatal(err)
	}
	r := start(t, pool.Config().ConnString(), "amqp://guest:guest@"+nowhere+"/")
	answered := make(chan int, 1)
	go func() {
		status, _ := r.file()
		answered <- status
	}()
	r.eventually("the report is being written", func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), `
			select exists (select from pg_stat_activity
				where datname = current_database() and wait_event_type = 'Lock' and query like '%outbox_messages%')`).Scan(&waiting)
		return err == nil && waiting
	})
	r.stop()
	r.eventually("it takes no more connections", func() bool { return !r.listens() })
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != http.StatusCreated {
		t.Errorf("status %d, want 201", status)
	}
	r.end()
	var reports, announced int
	if err := pool.QueryRow(t.Context(), `select (select count(*) from reports), (select count(*) from outbox_messages)`).Scan(&reports, &announced); err != nil {
		t.Fatal(err)
	}
	if reports != 1 || announced != 1 {
		t.Errorf("%d reports and %d announcements, want one of each", reports, announced)
	}
}

// listens reports whether the service takes connections.
func (r *running) listens() bool {
	conn, err := net.Dial("tcp", r.getenv("HTTP_ADDR"))
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// While the broker is away, reports are taken; the service says that it is
// degraded.
func TestWithoutBroker(t *testing.T) {
	t.Parallel()
	r := start(t, pgtest.Report(t).Config().ConnString(), "amqp://guest:guest@"+nowhere+"/")
	if status, answer := r.file(); status != http.StatusCreated {
		t.Errorf("status %d: %s", status, answer)
	}
	if status, body := r.get("/readyz"); status != http.StatusOK || !strings.Contains(body, `"degraded"`) {
		t.Errorf("/readyz: %d %s, want 200 and degraded", status, body)
	}
	r.end()
}

// Without its database the service runs, says that it is not ready, and asks
// to come back later.
func TestWithoutDatabase(t *testing.T) {
	t.Parallel()
	r := start(t, "postgres://nobody@"+nowhere+"/nothing", "amqp://guest:guest@"+nowhere+"/")
	if status, answer := r.file(); status != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", status, answer)
	}
	if status, body := r.get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d %s, want 503", status, body)
	}
	if err := service.Healthcheck(t.Context(), r.getenv("HTTP_ADDR")); err == nil {
		t.Error("healthcheck succeeded")
	}
	r.end()
}

// While the database refuses changes, for whatever reason, reports are refused with
// 503 and the service is not ready; once it takes them again, it is.
func TestReadinessFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	owner := pgtest.Report(t)
	role := fmt.Sprintf("readiness_%d", time.Now().UnixNano())
	exec := func(sql string) {
		t.Helper()
		if _, err := owner.Exec(context.WithoutCancel(t.Context()), strings.ReplaceAll(sql, "%role%", role)); err != nil {
			t.Fatal(err)
		}
	}
	exec(`create role %role% login password 'secret'; grant usage on schema public to %role%;
		grant select, insert, update, delete on all tables in schema public to %role%;
		grant usage, select on all sequences in schema public to %role%`)
	t.Cleanup(func() { exec(`drop owned by %role%; drop role %role%`) })
	address, err := url.Parse(owner.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(role, "secret")
	r := start(t, address.String(), "amqp://guest:guest@"+nowhere+"/")
	ready := func(want int) func() bool {
		return func() bool { status, _ := r.get("/readyz"); return status == want }
	}
	r.eventually("it is ready", ready(http.StatusOK))
	const restart = `; select pg_terminate_backend(pid) from pg_stat_activity where usename = '%role%'`
	for _, tt := range []struct{ name, breaks, repairs string }{
		{"revoked", `revoke insert, update on all tables in schema public from %role%`, `grant insert, update on all tables in schema public to %role%`},
		{"renamed", `alter table outbox_messages rename to o`, `alter table o rename to outbox_messages`},
		{"full", `select setval('status_history_id_seq', 9223372036854775807)`, `select setval('status_history_id_seq', 1)`},
		{"misconfigured", `alter role %role% set default_transaction_read_only = on` + restart, `alter role %role% reset default_transaction_read_only` + restart},
	} {
		exec(tt.breaks)
		r.eventually(tt.name+": a report is refused with 503", func() bool { status, _ := r.file(); return status == http.StatusServiceUnavailable })
		r.eventually(tt.name+": it is not ready", ready(http.StatusServiceUnavailable))
		exec(tt.repairs)
		r.eventually(tt.name+": it is ready again", ready(http.StatusOK))
		r.eventually(tt.name+": a report is taken", func() bool { status, _ := r.file(); return status == http.StatusCreated })
	}
	tx, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `lock table reports`); err != nil {
		t.Fatal(err)
	}
	r.eventually("locked: it is not ready", ready(http.StatusServiceUnavailable))
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.eventually("not locked: it is ready again", ready(http.StatusOK))
	// Sequences behind their tables, as after a restore of the tables alone, are advanced.
	exec(`alter sequence status_history_id_seq restart with 1`)
	r.eventually("a sequence is advanced", func() bool { status, _ := r.get("/readyz"); taken, _ := r.file(); return status == 200 && taken == 201 })
	r.end()
}

func TestWrongEnvironment(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	err := run(t.Context(), func(name string) string { return map[string]string{"LOG_LEVEL": "info"}[name] }, &logs)
	if err == nil || !strings.Contains(err.Error(), "DATABASE_URL: must be set to a value") || logs.Len() > 0 {
		t.Errorf("run: error %v and log %q, want an error that names the variable", err, &logs)
	}
	if err := service.Healthcheck(t.Context(), "nonsense"); err == nil || !strings.Contains(err.Error(), "HTTP_ADDR") {
		t.Errorf("healthcheck: error %v, want one that names HTTP_ADDR", err)
	}
}
