package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// webhooks returns the operations on webhooks as the service has them.
func webhooks(t *testing.T, r *consumertest.Harness, broker string) admin.Webhooks {
	t.Helper()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	db := postgres.New(r.Pool, postgres.Options{})
	return admin.Webhooks{Endpoints: db.Endpoints, Deliveries: db.Deliveries, Queue: webhookQueue(t, r.Pool, broker), Keys: keys}
}

// webhookQueue keeps the queue at the broker, as notification-service does.
func webhookQueue(t *testing.T, pool *pgxpool.Pool, url string) *topology.Checker {
	t.Helper()
	group := webhook.Group(postgres.New(pool, postgres.Options{}).Endpoints, nil)
	broker := topology.New(event.Topology{}, nil, topology.Group{Name: group.Name, Queues: group.Queues, Elsewhere: true})
	checker, err := topology.NewChecker(broker, "", rabbit.Config{URL: url, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	return checker
}

// Events are kept for an endpoint from the moment in which its registration is
// answered, and by no broker as long as there is none.
func TestQueueOfWebhooksAwaitsTheFirst(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	conn, err := amqp.Dial(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	depth := func() (int, error) {
		ch, err := conn.Channel() // a queue that is not there closes it
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ch.Close() }()
		q, err := ch.QueueDeclarePassive(webhook.Queue, true, false, false, false, nil)
		return q.Messages, err
	}
	if _, err := depth(); err == nil {
		t.Error("the queue is there before anybody has a use for it")
	}
	c.ask(http.MethodPost, "/admin/webhooks", `{"url":"https://hooks.example.org"}`, "", http.StatusCreated, nil)
	c.Publish(c.Vote("alice"))
	c.EventuallyEqual("messages that wait for the worker", 1, func() int { n, _ := depth(); return n })
}

// Without the broker nothing would be kept for an endpoint: it is not registered.
func TestWebhookIsRefusedWithoutTheBroker(t *testing.T) {
	t.Parallel()
	c := openConsole(t, consumertest.New(t, pgtest.Notification(t)), auth.Operator, "amqp://127.0.0.1:1/") // nobody listens there
	var p problem
	c.ask(http.MethodPost, "/admin/webhooks", `{"url":"https://hooks.example.org"}`, "", http.StatusServiceUnavailable, &p)
	if !strings.Contains(p.Detail, "was not registered") {
		t.Errorf("the client reads %q, want that nothing was registered", p.Detail)
	}
	var list struct{ Items []endpoint }
	c.ask(http.MethodGet, "/admin/webhooks", "", "", http.StatusOK, &list)
	if len(list.Items) != 0 {
		t.Errorf("there are %d endpoints, want none", len(list.Items))
	}
}

type endpoint struct {
	ID                  string
	URL                 string
	Description         string
	EventTypes          []string  `json:"event_types"`
	CategoryIDs         []int32   `json:"category_ids"`
	Area                []float64 // west, south, east, north
	Order               string
	InFlight            int `json:"in_flight"`
	State               string
	StateReason         string    `json:"state_reason"`
	PreviousSecretUntil time.Time `json:"previous_secret_until"`
	Version             int64
	Summary             struct{ Waiting, Held int64 }
}

type problem struct {
	Type   string
	Detail string
	Errors []struct{ Pointer, Detail string }
}

type delivery struct {
	ID        int64
	Type      string
	State     string
	MessageID string `json:"message_id"`
	Body      string
	Attempts  []struct {
		Number         int
		Status         int
		Class          string
		Response       string
		RequestHeaders map[string]string `json:"request_headers"`
	}
}

func TestOnlyOperatorsSeeWebhooks(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Official)
	const id = "0198c0de-0000-7000-8000-000000000001"
	for _, op := range []string{
		"GET /admin/webhooks", "POST /admin/webhooks", "GET /admin/webhooks/" + id, "PATCH /admin/webhooks/" + id,
		"DELETE /admin/webhooks/" + id, "POST /admin/webhooks/" + id + "/rotate", "POST /admin/webhooks/" + id + "/enable",
		"POST /admin/webhooks/" + id + "/disable", "POST /admin/webhooks/" + id + "/test", "POST /admin/webhooks/" + id + "/recover",
		"GET /admin/webhooks/" + id + "/deliveries", "GET /admin/deliveries/1", "POST /admin/deliveries/1/resend",
	} {
		method, path, _ := strings.Cut(op, " ")
		c.ask(method, path, "{}", "*", http.StatusForbidden, nil)
	}
}

func TestRegisterWebhook(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	for body, want := range map[string]string{
		`{"url":"http://hooks.example.org"}`:                                 "/url: must be an address that begins with https://",
		`{"url":"https://127.0.0.1/x"}`:                                      "/url: must have the name of a host",
		`{"url":"https://hooks.example.org","event_types":["report.burnt"]}`: "/event_types/0: must be one of report.status.updated",
		`{"url":"https://hooks.example.org","area":[1,2,3]}`:                 "/area: must be four numbers",
		`{"url":"https://hooks.example.org","area":[10,0,5,1]}`:              "/area: must have the west before the east",
		`{"url":"https://hooks.example.org","category_ids":[0]}`:             "/category_ids/0: must be at least 1",
		`{"url":"https://hooks.example.org","in_flight":17}`:                 "/in_flight: must be at most 16",
		`{"url":"https://hooks.example.org","order":"random"}`:               "/order: must be one of report, none",
		`{"url":"https://hooks.example.org","secret":"whsec_mine"}`:          "/secret: unknown field",
		`{}`: "/url: missing",
		`{"url":"https://hooks.example.org","event_types":["report.created","report.created"]}`: "/event_types: must have each element only once",
	} {
		var p problem
		c.ask(http.MethodPost, "/admin/webhooks", body, "", http.StatusBadRequest, &p)
		if len(p.Errors) != 1 || !strings.HasPrefix(p.Errors[0].Pointer+": "+p.Errors[0].Detail, want) {
			t.Errorf("%s: %+v, want %q", body, p.Errors, want)
		}
	}

	var made struct {
		Webhook endpoint
		Secret  string
	}
	header := c.ask(http.MethodPost, "/admin/webhooks", `{"url":"https://hooks.example.org/in","description":"Work orders",
		"event_types":["report.created"],"category_ids":[2],"area":[107.5,-7,107.8,-6.8]}`, "", http.StatusCreated, &made)
	if w := made.Webhook; w.Order != "report" || w.InFlight != 2 || w.State != "enabled" || len(w.Area) != 4 || w.Version != 1 {
		t.Errorf("registered %+v", w)
	}
	if !strings.HasPrefix(made.Secret, "whsec_") || header.Get("ETag") != `"1"` {
		t.Errorf("secret %q, ETag %s", made.Secret, header.Get("ETag"))
	}
	path := header.Get("Location")
	// Neither the row, nor any answer but this one, shows the secret.
	var row string
	if err := c.Pool.QueryRow(t.Context(), `select e::text from webhook_endpoints e`).Scan(&row); err != nil {
		t.Fatal(err)
	}
	shown := c.call(http.MethodGet, path, "", http.StatusOK, nil) + c.call(http.MethodGet, "/admin/webhooks", "", http.StatusOK, nil) +
		c.call(http.MethodGet, "/admin/dlq/audit", "", http.StatusOK, nil)
	if key := strings.TrimPrefix(made.Secret, "whsec_"); strings.Contains(row+shown, key) || strings.Contains(shown, "v2.") {
		t.Error("the secret is shown, or kept in the open")
	}
}

func TestChangeWebhook(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	path := c.register()
	var w endpoint
	header := c.ask(http.MethodPatch, path, `{"description":"Chat","area":[],"category_ids":[]}`, `"1"`, http.StatusOK, &w)
	if w.Description != "Chat" || len(w.Area) != 0 || len(w.CategoryIDs) != 0 || len(w.EventTypes) != 1 || header.Get("ETag") != `"2"` {
		t.Errorf("changed to %+v at %s", w, header.Get("ETag"))
	}
	var p problem
	c.ask(http.MethodPatch, path, `{"description":"Slow"}`, `"1"`, http.StatusPreconditionFailed, &p)
	if !strings.HasSuffix(p.Type, "#stale-version") || !strings.Contains(p.Detail, "at version 2") {
		t.Errorf("a change of an old version is the problem %+v", p)
	}
	c.ask(http.MethodPatch, path, `{"description":"No version"}`, "", http.StatusBadRequest, &p)
	c.ask(http.MethodPatch, path, `{"description":"Weak"}`, `W/"2"`, http.StatusBadRequest, &p)
	c.ask(http.MethodPatch, path, `{"url":"https://localhost"}`, `*`, http.StatusBadRequest, &p)
	c.ask(http.MethodPatch, path, `{"order":"none","in_flight":16}`, `*`, http.StatusOK, &w)
	if w.Order != "none" || w.InFlight != 16 || w.Version != 3 {
		t.Errorf("changed to %+v", w)
	}
	c.ask(http.MethodDelete, path, "", `"2"`, http.StatusPreconditionFailed, nil)
	c.ask(http.MethodDelete, path, "", `"3"`, http.StatusNoContent, nil)
	c.ask(http.MethodGet, path, "", "", http.StatusNotFound, nil)
	c.ask(http.MethodPatch, path, `{"order":"none"}`, `*`, http.StatusNotFound, nil)
}

// register registers an endpoint and returns its path.
func (c *console) register() string {
	c.t.Helper()
	return c.ask(http.MethodPost, "/admin/webhooks",
		`{"url":"https://hooks.example.org","event_types":["report.created"],"category_ids":[2],"area":[1,2,3,4]}`, "",
		http.StatusCreated, nil).Get("Location")
}

func TestRotateWebhookSecret(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	path := c.register()
	var day, atOnce struct {
		Secret              string
		PreviousSecretUntil time.Time `json:"previous_secret_until"`
	}
	c.ask(http.MethodPost, path+"/rotate", ``, "", http.StatusOK, &day)
	if until := time.Until(day.PreviousSecretUntil); until < 23*time.Hour || until > 25*time.Hour {
		t.Errorf("the old secret ends at %v, want it to be in a day", day.PreviousSecretUntil)
	}
	c.ask(http.MethodPost, path+"/rotate", `{"keep_old_for_s":0}`, "", http.StatusOK, &atOnce)
	if !atOnce.PreviousSecretUntil.IsZero() || atOnce.Secret == day.Secret {
		t.Errorf("the old secret ends at %v, want it to have ended", atOnce.PreviousSecretUntil)
	}
	c.ask(http.MethodPost, path+"/rotate", `{"keep_old_for_s":604801}`, "", http.StatusBadRequest, nil)
}

func TestWebhookDeliveries(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	path := c.register()
	var sent, read delivery
	location := c.ask(http.MethodPost, path+"/test", "", "", http.StatusAccepted, &sent).Get("Location")
	if sent.State != "waiting" || sent.Type != "webhook.test" || location != fmt.Sprintf("/admin/deliveries/%d", sent.ID) {
		t.Errorf("a test is %+v at %s", sent, location)
	}
	_, err := c.Pool.Exec(t.Context(), `
		with a as (
		  insert into delivery_attempts (delivery_id, n, at, duration_ms, status, class, error, response)
		  values ($1, 1, now(), 12, 400, 'refused', 'answered 400', 'no such event'))
		update deliveries set state = 'dead', attempts = 1, last_status = 400, last_class = 'refused', done_at = now() where id = $1`, sent.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.ask(http.MethodGet, location, "", "", http.StatusOK, &read)
	if len(read.Attempts) != 1 || read.Attempts[0].Response != "no such event" || read.Attempts[0].RequestHeaders["webhook-id"] != sent.MessageID ||
		!strings.Contains(read.Body, `"webhook.test"`) {
		t.Errorf("read as %+v", read)
	}
	if _, signed := read.Attempts[0].RequestHeaders["webhook-signature"]; signed {
		t.Error("the log shows a signature")
	}
	var p page[delivery]
	for query, want := range map[string]int{"": 1, "?state=dead": 1, "?state=done": 0, "?type=webhook.test": 1, "?type=report.created": 0, "?limit=1": 1} {
		c.ask(http.MethodGet, path+"/deliveries"+query, "", "", http.StatusOK, &p)
		if len(p.Items) != want || p.NextCursor != "" {
			t.Errorf("%q lists %d, cursor %q; want %d", query, len(p.Items), p.NextCursor, want)
		}
	}
	c.ask(http.MethodGet, path+"/deliveries?state=lost", "", "", http.StatusBadRequest, nil)
	c.ask(http.MethodPost, location+"/resend", "", "", http.StatusOK, &read)
	if read.State != "waiting" || read.MessageID != sent.MessageID {
		t.Errorf("resent as %+v", read)
	}
	c.ask(http.MethodGet, "/admin/deliveries/999999", "", "", http.StatusNotFound, nil)

	var w endpoint
	c.ask(http.MethodPost, path+"/disable", "", "", http.StatusOK, &w)
	if w.State != "disabled" || w.StateReason != "operator" || w.Summary.Held != 1 {
		t.Errorf("disabled as %+v", w)
	}
	for _, action := range []string{path + "/test", path + "/disable", location + "/resend"} {
		c.ask(http.MethodPost, action, "", "", http.StatusConflict, nil)
	}
	c.ask(http.MethodPost, path+"/enable", `{}`, "", http.StatusBadRequest, nil)
	c.ask(http.MethodPost, path+"/enable", `{"held":"send"}`, "", http.StatusOK, &w)
	if w.State != "enabled" || w.Summary.Waiting != 1 || w.Summary.Held != 0 {
		t.Errorf("enabled as %+v", w)
	}
	var recovered struct{ Resent, Created int64 }
	c.ask(http.MethodPost, path+"/recover", `{"since":"2026-01-01T00:00:00Z","until":"2026-01-01T00:00:00Z"}`, "", http.StatusBadRequest, nil)
	c.ask(http.MethodPost, path+"/recover", `{"since":"2026-01-01T00:00:00Z","until":"2126-01-01T00:00:00Z","dry_run":true}`, "", http.StatusOK, &recovered)
	if recovered.Resent != 0 || recovered.Created != 0 {
		t.Errorf("a recovery of nothing counts %+v", recovered)
	}

	var audit page[struct{ Action, Actor string }]
	c.ask(http.MethodGet, "/admin/dlq/audit", "", "", http.StatusOK, &audit)
	var actions []string
	for _, entry := range audit.Items {
		actions = append(actions, entry.Action)
	}
	if got, want := strings.Join(actions, " "), "webhook_enable webhook_disable webhook_resend webhook_test webhook_create"; got != want {
		t.Errorf("the audit log has %s, want %s", got, want)
	}
}
