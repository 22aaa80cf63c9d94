package admin_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/operators"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/openapitest"
	"github.com/cityconnect/cityconnect/platform/topology"
)

const documentPath = "../../../docs/openapi/notification-service.yaml"

// document is what every answer in these tests is held to.
var document = openapitest.New(documentPath)

// A console is the operators' API as the service has it, and a caller.
type console struct {
	*consumertest.Harness
	t      *testing.T
	server *httptest.Server
}

func newConsole(t *testing.T, role auth.Role) *console {
	t.Helper()
	r := consumertest.New(t, pgtest.Notification(t))
	return openConsole(t, r, role, r.URL)
}

// openConsole returns one of r whose queue of webhooks is at another broker.
func openConsole(t *testing.T, r *consumertest.Harness, role auth.Role, webhookBroker string) *console {
	t.Helper()
	c, _ := r.Start()
	r.StartArchive()
	r.WaitSubscribed(1)
	source, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi.Load(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	router := service.NewRouter(doc.Version(), r.Log, service.NewRegistry(), service.NewHealth(r.Log, service.Details{}))
	router.Group(func(g chi.Router) {
		g.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Principal{ID: "operator-1", Role: role})))
			})
		})
		g.HandleFunc("/*", service.NotFoundHandler) // what is not the operators'
		past := func(ctx context.Context, span time.Duration) (history.History, error) {
			return history.Read(ctx, r.Pool, span)
		}
		letters := admin.Letters{Store: r.Letters}
		err = doc.Mount(g, service.Errors{Log: r.Log, Problems: admin.Problems},
			append([]openapi.Operations{letters.Operations(), letters.ReplayOperations(), admin.Delayed{Store: delay.NewStore(r.Pool)}.Operations(), admin.Pools{Consumer: c, Checker: new(topology.Checker)}.Operations()},
				webhooks(t, r, webhookBroker).Operations(), backOffice(t, r).Operations(), admin.StoryOperations(postgres.NewStories(r.Pool, "queue.vote_received", "queue.webhooks")), operators.ReconciliationOperations(reconciliation.NewResults(r.Pool, reconciliation.ToOperations)), openapi.Operations{"workerPoolHistory": operators.History(past)})...)
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return &console{Harness: r, t: t, server: server}
}

// call sends a request and reads the answer into answer, if it is not nil.
func (c *console) call(method, path, body string, want int, answer any) string {
	c.t.Helper()
	_, text := c.send(method, path, body, "", want, answer)
	return string(text)
}

// ask is call for a version that was seen. It returns the header of the answer.
func (c *console) ask(method, path, body, ifMatch string, want int, answer any) http.Header {
	c.t.Helper()
	header, _ := c.send(method, path, body, ifMatch, want, answer)
	return header
}

// send sends a request until the answer is another than that the broker, which all
// tests share, has too much to do.
func (c *console) send(method, path, body, ifMatch string, want int, answer any) (header http.Header, text []byte) {
	c.t.Helper()
	var status int
	c.Eventually(method+" "+path, func() string {
		status, header, text = c.exchange(method, path, body, ifMatch)
		if status == http.StatusServiceUnavailable && status != want {
			return string(text)
		}
		return ""
	})
	if status != want {
		c.t.Fatalf("%s %s: %d, want %d: %s", method, path, status, want, text)
	}
	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			c.t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return header, text
}

func (c *console) exchange(method, path, body, ifMatch string) (status int, header http.Header, text []byte) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if ifMatch != "" {
		req.Header.Set("If-Match", ifMatch)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err = io.ReadAll(res.Body); err != nil {
		c.t.Fatal(err)
	}
	document.Check(c.t, req, res, text)
	return res.StatusCode, res.Header, text
}

// A page is what lists answer with.
type page[T any] struct {
	Items      []T
	NextCursor string `json:"next_cursor"`
}

type letter struct {
	ID        int64
	Queue     string
	State     string
	MessageID string `json:"message_id"`
	Class     string `json:"error_class"`
	Group     string `json:"error_group"`
	ParentID  int64  `json:"parent_id"`
	Body      json.RawMessage
	Headers   map[string]any
	Attempts  []struct{ Error string }
}

// breakSome publishes votes whose title is missing and whose voter is secret.
func (c *console) breakSome(n int) {
	c.t.Helper()
	for range n {
		m := c.Vote("alice")
		m.Body = []byte(strings.NewReplacer(`"Pothole"`, `""`, `"voter"`, `"secret-canary"`).Replace(string(m.Body)))
		c.Publish(m)
	}
	c.EventuallyEqual("open dead letters", n, func() int {
		return c.Count(`select count(*) from dead_letters where state = 'open'`)
	})
}

func TestOnlyOperators(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Official)
	for _, path := range []string{
		"/admin/dlq/stats", "/admin/dlq/groups", "/admin/dlq/messages", "/admin/dlq/messages/1",
		"/admin/dlq/export", "/admin/dlq/replays", "/admin/dlq/audit", "/admin/workers", "/admin/workers/history",
		"/admin/delayed", "/admin/messages/" + uuid.NewString() + "/story",
		"/admin/notifications/reconciliation", "/admin/notifications/reconciliation/messages",
	} {
		c.call(http.MethodGet, path, "", http.StatusForbidden, nil)
	}
	c.call(http.MethodPost, "/admin/dlq/replays", `{"selection":{"ids":[1]}}`, http.StatusForbidden, nil)
	c.call(http.MethodPatch, "/admin/workers/queue.vote_received", `{"paused":true}`, http.StatusForbidden, nil)
}

func TestLookingAtDeadLetters(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	c.breakSome(5)
	for query, want := range map[string]int{"text=REPORT_title": 5, "text=nobody": 0, "from=2000-01-01T00:00:00Z": 5, "to=2000-01-01T00:00:00Z": 0} {
		var found page[letter]
		if c.call(http.MethodGet, "/admin/dlq/messages?"+query, "", http.StatusOK, &found); len(found.Items) != want {
			t.Errorf("%s: %d found, want %d", query, len(found.Items), want)
		}
	}
	var groups page[struct {
		Group string `json:"error_group"`
		Open  int
	}]
	c.call(http.MethodGet, "/admin/dlq/groups", "", http.StatusOK, &groups)
	if len(groups.Items) != 1 || groups.Items[0].Open != 5 || groups.Items[0].Group != "body breaks the contract: report_title: must be a text that is not empty" {
		t.Errorf("groups %+v", groups.Items)
	}
	seen := make(map[int64]bool)
	path := "/admin/dlq/messages?limit=2&queue=queue.vote_received&error_class=permanent&state=open"
	for cursor := ""; ; {
		var letters page[letter]
		c.call(http.MethodGet, path+cursor, "", http.StatusOK, &letters)
		for _, l := range letters.Items {
			seen[l.ID] = true
			if sealed := l.Headers[event.RecipientHeader]; sealed != "sealed" {
				t.Errorf("the recipient is shown as %v", sealed)
			}
		}
		if letters.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + letters.NextCursor
	}
	if len(seen) != 5 {
		t.Errorf("paging showed %d dead letters, want 5", len(seen))
	}
	everything := c.call(http.MethodGet, "/admin/dlq/export", "", http.StatusOK, nil) +
		c.call(http.MethodGet, "/admin/dlq/messages", "", http.StatusOK, nil) +
		c.call(http.MethodGet, "/admin/dlq/stats", "", http.StatusOK, nil)
	if strings.Count(everything, "\n") != 5+1+1 {
		t.Errorf("export has %d lines, want 5", strings.Count(everything, "\n")-2)
	}
	if strings.Contains(everything, "secret-canary") {
		t.Error("an answer names a voter")
	}
	c.call(http.MethodGet, "/admin/dlq/messages/999999", "", http.StatusNotFound, nil)
	c.call(http.MethodGet, "/admin/dlq/messages?state=asleep", "", http.StatusBadRequest, nil)
	c.call(http.MethodGet, "/admin/dlq/messages?cursor=x", "", http.StatusBadRequest, nil)
	c.call(http.MethodGet, "/admin/dlq/messages?cursor=999999999999999999", "", http.StatusOK, nil)
	c.call(http.MethodGet, "/admin/dlq/audit?cursor=999999999999999999", "", http.StatusOK, nil)
}

func TestEditAndReplay(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	c.breakSome(1)
	var letters page[letter]
	c.call(http.MethodGet, "/admin/dlq/messages", "", http.StatusOK, &letters)
	old := letters.Items[0]
	path := "/admin/dlq/messages/" + jsonOf(t, old.ID)
	mended := strings.Replace(string(old.Body), `"report_title":""`, `"report_title":"Pothole"`, 1)

	c.call(http.MethodPost, path+"/edit", `{"body":`+string(old.Body)+`}`, http.StatusBadRequest, nil)
	var answer struct {
		ID      int64
		Changes []struct{ Field string }
	}
	c.call(http.MethodPost, path+"/edit", `{"dry_run":true,"body":`+mended+`}`, http.StatusOK, &answer)
	if len(answer.Changes) != 1 || answer.Changes[0].Field != "report_title" || answer.ID != 0 {
		t.Errorf("dry run answers %+v", answer)
	}
	c.call(http.MethodPost, path+"/edit", `{"body":`+mended+`}`, http.StatusCreated, &answer)
	c.call(http.MethodPost, path+"/edit", `{"body":`+mended+`}`, http.StatusConflict, nil)
	if kept := c.Count(`select count(*) from dead_letters where convert_from(body, 'UTF8') like '%secret-canary%' and id = $1`, answer.ID); kept != 1 {
		t.Error("the masked voter was lost in the edit")
	}
	edited := "/admin/dlq/messages/" + jsonOf(t, answer.ID)
	c.call(http.MethodPost, edited+"/replay", "", http.StatusCreated, nil)
	c.WaitEffects(1)
	c.EventuallyEqual("resolved", 1, func() int { return c.Count(`select count(*) from dead_letters where state = 'resolved'`) })
	var now letter
	c.call(http.MethodGet, edited, "", http.StatusOK, &now)
	if now.ParentID != old.ID || now.State != "resolved" || now.MessageID == old.MessageID {
		t.Errorf("the edited letter is %+v, want resolved, with a new id and parent %d", now, old.ID)
	}
	c.call(http.MethodGet, path, "", http.StatusOK, &now)
	if now.State != "discarded" || len(now.Attempts) != 1 {
		t.Errorf("the letter before the edit is %s with %d attempts, want discarded with 1", now.State, len(now.Attempts))
	}
	c.CheckEffects(1)
}

func TestReplays(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	c.breakSome(3)
	var rehearsal struct {
		WouldSend int `json:"would_send"`
	}
	c.call(http.MethodPost, "/admin/dlq/replays", `{"selection":{"error_class":"permanent"},"dry_run":true,"limit":2}`, http.StatusOK, &rehearsal)
	if rehearsal.WouldSend != 2 {
		t.Errorf("the rehearsal would send %d, want 2", rehearsal.WouldSend)
	}
	c.call(http.MethodPost, "/admin/dlq/replays", `{"selection":{}}`, http.StatusBadRequest, nil)
	c.call(http.MethodPost, "/admin/dlq/replays", `{"selection":{"queue":"q"},"speed":1}`, http.StatusBadRequest, nil)
	c.call(http.MethodPost, "/admin/dlq/replays", `{"selection":{"queue":"q"}}`, http.StatusConflict, nil)
	var replay struct{ ID, State string }
	c.call(http.MethodPost, "/admin/dlq/replays", `{"selection":{"queue":"queue.vote_received"},"canary":1}`, http.StatusCreated, &replay)
	c.Eventually("replay", func() string {
		c.call(http.MethodGet, "/admin/dlq/replays/"+replay.ID, "", http.StatusOK, &replay)
		if replay.State != "stopped" {
			return "is " + replay.State
		}
		return ""
	})
	c.call(http.MethodPost, "/admin/dlq/replays/"+replay.ID+"/resume", "", http.StatusConflict, nil)
	c.call(http.MethodPost, "/admin/dlq/replays/"+replay.ID+"/explode", "", http.StatusBadRequest, nil)
	c.call(http.MethodGet, "/admin/dlq/replays/00000000-0000-0000-0000-000000000000", "", http.StatusNotFound, nil)

	var gone struct{ Discarded int }
	c.call(http.MethodPost, "/admin/dlq/discard", `{"selection":{"queue":"queue.vote_received"},"reason":"test data"}`, http.StatusOK, &gone)
	if gone.Discarded != 3 {
		t.Errorf("%d discarded, want 3", gone.Discarded)
	}
	var discarded page[struct {
		ID    int64
		State string
	}]
	c.call(http.MethodGet, "/admin/dlq/messages?state=discarded&limit=1", "", http.StatusOK, &discarded)
	restored := discarded.Items[0]
	restore := "/admin/dlq/messages/" + strconv.FormatInt(restored.ID, 10) + "/restore"
	c.call(http.MethodPost, restore, `{}`, http.StatusBadRequest, nil)
	c.call(http.MethodPost, restore, `{"reason":"a mistake"}`, http.StatusOK, &restored)
	if restored.State != "open" {
		t.Errorf("the restored one is %s, want open", restored.State)
	}
	c.call(http.MethodPost, restore, `{"reason":"a mistake"}`, http.StatusConflict, nil)
	var log page[struct{ Actor, Action string }]
	c.call(http.MethodGet, "/admin/dlq/audit?limit=1", "", http.StatusOK, &log)
	if len(log.Items) != 1 || log.Items[0].Action != "restore" || log.Items[0].Actor != "operator-1" || log.NextCursor == "" {
		t.Errorf("audit %+v", log)
	}
}

func TestWorkerPools(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	var pool struct {
		Concurrency int
		Paused      bool
	}
	c.call(http.MethodPatch, "/admin/workers/queue.vote_received", `{"concurrency":3}`, http.StatusOK, &pool)
	if pool.Concurrency != 3 {
		t.Errorf("concurrency %d, want 3", pool.Concurrency)
	}
	var pools page[struct {
		Queue   string
		Workers int
	}]
	c.Eventually("workers", func() string {
		c.call(http.MethodGet, "/admin/workers", "", http.StatusOK, &pools)
		if n := pools.Items[2].Workers; n != 3 {
			return jsonOf(t, n)
		}
		return ""
	})
	c.Publish(c.Votes(5, "alice")...)
	var times page[map[string]any]
	c.Eventually("the handler's times", func() string {
		c.call(http.MethodGet, "/admin/workers", "", http.StatusOK, &times)
		p50, _ := times.Items[2]["handler_p50_ms"].(float64)
		p99, _ := times.Items[2]["handler_p99_ms"].(float64)
		if p50 <= 0 || p99 < p50 {
			return jsonOf(t, times.Items[2])
		}
		return ""
	})
	if idle := times.Items[0]; idle["handler_p50_ms"] != 0.0 || idle["handler_p99_ms"] != 0.0 {
		t.Errorf("a queue that had nothing to do: %v", idle)
	}
	type waiting struct {
		Queue  string
		DelayS float64 `json:"delay_s"`
		Of     string
	}
	var between struct{ Waiting []waiting }
	c.call(http.MethodGet, "/admin/workers", "", http.StatusOK, &between)
	for _, want := range []waiting{{"cityconnect.retry.5s", 5, ""}, {"queue.vote_received.dlq", 0, "queue.vote_received"}} {
		if !slices.Contains(between.Waiting, want) {
			t.Errorf("waiting queues %+v, want %+v among them", between.Waiting, want)
		}
	}
	c.call(http.MethodPatch, "/admin/workers/queue.vote_received", `{"concurrency":65}`, http.StatusBadRequest, nil)
	c.call(http.MethodPatch, "/admin/workers/queue.vote_received", `{"prefetch":10.0}`, http.StatusBadRequest, nil)
	c.call(http.MethodPatch, "/admin/workers/queue.vote_received", `{}`, http.StatusBadRequest, nil)
	c.call(http.MethodPatch, "/admin/workers/queue.other", `{"paused":true}`, http.StatusNotFound, nil)
}

// A message that waits is listed with its persons masked; one is released
// early and has its effect, one is cancelled and never has it.
func TestDelayedMessages(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	const n = 5
	votes := c.Votes(n, "alice")
	for i := range votes {
		votes[i].Headers[event.NotBeforeHeader] = time.Now().Add(time.Duration(i+1) * time.Hour).UnixMilli()
		votes[i].Body = bytes.Replace(votes[i].Body, []byte(`"voter"`), []byte(`"secret-canary"`), 1)
	}
	votes[0].ID, votes[4].ID = "odd 50%", "odd/id 100%" // anyone may publish any id
	c.Publish(votes...)
	c.EventuallyEqual("messages that wait", n, func() int { return c.Count(`select count(*) from delayed_messages`) })

	type message struct {
		Queue     string
		MessageID string    `json:"message_id"`
		DueAt     time.Time `json:"due_at"`
	}
	var seen []message
	for cursor := ""; ; {
		var list page[message]
		text := c.call(http.MethodGet, "/admin/delayed?queue=queue.vote_received&limit=2"+cursor, "", http.StatusOK, &list)
		if strings.Contains(text, "secret-canary") {
			t.Error("an answer names a voter")
		}
		seen = append(seen, list.Items...)
		if list.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + list.NextCursor
	}
	for i, m := range seen {
		if i >= n || m.MessageID != votes[i].ID {
			t.Errorf("number %d in the list is %s, want them by the time that they wait for", i, m.MessageID)
		}
	}
	if len(seen) != n {
		t.Fatalf("paging showed %d messages, want %d", len(seen), n)
	}
	var some page[message]
	between := "/admin/delayed?from=" + seen[1].DueAt.UTC().Format(time.RFC3339Nano) + "&to=" + seen[3].DueAt.UTC().Format(time.RFC3339Nano)
	if c.call(http.MethodGet, between, "", http.StatusOK, &some); len(some.Items) != 2 {
		t.Errorf("%d messages are due in between, want 2", len(some.Items))
	}
	c.call(http.MethodGet, "/admin/delayed?cursor=AAAA", "", http.StatusBadRequest, nil)
	for _, cursor := range []string{"1 q a\x00", "1 q \xff", "9223372036854775807 q a", "-1 q a"} {
		c.call(http.MethodGet, "/admin/delayed?cursor="+base64.RawURLEncoding.EncodeToString([]byte(cursor)), "", http.StatusBadRequest, nil)
	}
	for _, id := range []string{"%00", "%FF", "unknown"} {
		c.call(http.MethodPost, "/admin/delayed/queue.vote_received/"+id+"/release", "", http.StatusNotFound, nil)
	}
	c.call(http.MethodGet, "/admin/delayed?from=tomorrow", "", http.StatusBadRequest, nil)

	path := func(i int) string { return "/admin/delayed/queue.vote_received/" + url.PathEscape(seen[i].MessageID) }
	release, err := http.Post(c.server.URL+path(4)+"/release", "", nil) // whose slash the document's check would take for one of the path
	if err != nil {
		t.Fatal(err)
	}
	defer release.Body.Close()
	if release.StatusCode != http.StatusAccepted {
		t.Fatalf("release %s: %s, want 202", seen[4].MessageID, release.Status)
	}
	c.WaitEffects(1)
	c.EventuallyEqual("messages that wait", n-1, func() int { return c.Count(`select count(*) from delayed_messages`) })
	c.call(http.MethodDelete, path(0), "", http.StatusBadRequest, nil)
	c.call(http.MethodDelete, path(0)+"?reason=test+data", "", http.StatusNoContent, nil)
	c.call(http.MethodDelete, path(0)+"?reason=test+data", "", http.StatusNotFound, nil)
	votes[0].Headers[event.NotBeforeHeader] = time.Now().UnixMilli()
	c.Publish(votes[0]) // another copy, which would be handled now
	c.EventuallyEqual("duplicates", 1, func() int { return c.Metric("consumer_messages_duplicate_total") })
	c.CheckEffects(1)
	for action, want := range map[string]int{"release_delayed": 1, "cancel_delayed": 1} {
		if got := c.Count(`select count(*) from operations_audit where actor = 'operator-1' and action = $1 and detail ->> 'message_id' is not null`, action); got != want {
			t.Errorf("%d entries %s in the audit, want %d", got, action, want)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
