package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// An otherSystem receives webhooks as docs/webhooks.md says.
type otherSystem struct {
	t      *testing.T
	path   string // of its endpoint in the API
	server *httptest.Server

	mu       sync.Mutex
	verifier *standardwebhooks.Webhook
	status   int             // what it answers
	requests []string        // with all that they say
	known    map[string]bool // ids that it has answered with 2xx
	events   []webhookEvent  // that it had
}

type webhookEvent struct {
	Type string `json:"type"`
	Data struct {
		ReportID      string `json:"report_id"`
		ReportVersion int64  `json:"report_version"`
		Status        string `json:"status"`
	} `json:"data"`
}

// openOtherSystem starts a system that answers with 204 and is not registered.
func openOtherSystem(t *testing.T) *otherSystem {
	t.Helper()
	o := &otherSystem{t: t, status: http.StatusNoContent, known: make(map[string]bool)}
	o.server = httptest.NewServer(http.HandlerFunc(o.handle))
	t.Cleanup(o.server.Close)
	return o
}

// register registers it, and starts the worker that sends to it.
func (o *otherSystem) register(c *stack, operator *client.Client) {
	o.t.Helper()
	c.startWorker()
	o.enter(operator)
}

// enter has an operator register it, with these scopes.
func (o *otherSystem) enter(operator *client.Client, scopes ...string) {
	o.t.Helper()
	var made struct {
		Webhook struct{ ID string }
		Secret  string
	}
	if err := operator.Insist(o.t.Context(), http.MethodPost, "/admin/webhooks", map[string]any{"url": o.server.URL, "description": "Other system", "scopes": append([]string{}, scopes...)}, &made); err != nil {
		o.t.Fatalf("register a webhook: %v", err)
	}
	o.path = "/admin/webhooks/" + made.Webhook.ID
	o.trust(made.Secret)
}

// startWorker starts the worker, and returns once it reads its queue.
func (c *stack) startWorker() {
	c.t.Helper()
	c.worker.start()
	c.awaitConsumersOf("queue.webhooks")
}

// trust has it verify requests with the secret.
func (o *otherSystem) trust(secret string) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.verifier = must(standardwebhooks.NewWebhook(secret))
}

func (o *otherSystem) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the worker was killed
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests = append(o.requests, fmt.Sprintf("%s %s %q %s", r.Method, r.URL, r.Header, body))
	if o.verifier == nil {
		w.WriteHeader(http.StatusServiceUnavailable) // its secret is still on its way
		return
	}
	if err := o.verifier.Verify(body, r.Header); err != nil {
		o.t.Errorf("a request is not signed as it has to be: %v", err)
	}
	if o.status/100 == 2 && !o.known[r.Header.Get("webhook-id")] {
		var e webhookEvent
		if err := json.Unmarshal(body, &e); err != nil {
			o.t.Errorf("a request has the body %s: %v", body, err)
		}
		o.known[r.Header.Get("webhook-id")] = true
		o.events = append(o.events, e)
	}
	w.WriteHeader(o.status)
}

// answer has it answer with status from now on.
func (o *otherSystem) answer(status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status = status
}

// seen returns what it was sent, and the events that it had.
func (o *otherSystem) seen() (requests []string, events []webhookEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.requests...), append([]webhookEvent(nil), o.events...)
}

// await returns when it has had n events.
func (o *otherSystem) await(n int) []webhookEvent {
	o.t.Helper()
	var events []webhookEvent
	eventually.True(o.t, fmt.Sprintf("the other system has %d events", n), func() bool {
		_, events = o.seen()
		return len(events) >= n
	})
	return events
}

// Another system learns of every change of a report, in order and each once,
// also of those that happened while it was disabled, and while nobody sent.
func TestOtherSystemLearnsOfEveryChange(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	pavel, ana, ben, olga := c.userOf("pavel", "operator"), c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	other := openOtherSystem(t)
	other.register(c, pavel)

	// Events of the same moment may be taken by several of the worker's consumers,
	// between which there is no order.
	report := file(t, ana, "Dark crossing")
	other.await(1)
	vote(t, ben, report, "upvote")
	other.await(2)
	move(t, olga, report, "in_progress", "Seen")
	other.await(3)
	if code, _ := c.worker.terminate(); code != 0 { // killed, it would keep its lanes for a minute
		t.Errorf("the worker ended with %d", code)
	}
	move(t, olga, report, "resolved", "Repaired")
	c.worker.start()
	other.await(4)
	do := func(path string, in any) {
		t.Helper()
		if err := pavel.Do(t.Context(), http.MethodPost, other.path+path, in, nil); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	do("/disable", nil)
	move(t, olga, report, "in_progress", "Not quite")
	var page struct{ Items []struct{ State string } }
	eventually.True(t, "the event is held", func() bool {
		err := pavel.Do(t.Context(), http.MethodGet, other.path+"/deliveries?state=held", nil, &page)
		return err == nil && len(page.Items) == 1
	})
	do("/enable", map[string]string{"held": "send"})

	events := other.await(5)
	want := []string{"report.created pending 1", "report.vote.received  2", "report.status.updated in_progress 3", "report.status.updated resolved 4", "report.status.updated in_progress 5"}
	for i, e := range events {
		if got := fmt.Sprintf("%s %s %d", e.Type, e.Data.Status, e.Data.ReportVersion); i >= len(want) || got != want[i] || e.Data.ReportID != report.ID.String() {
			t.Errorf("event %d is %s of %s, want %q of %s", i, got, e.Data.ReportID, want, report.ID)
		}
	}
}

// An operator registers an endpoint, tries it out, looks at what failed, and
// sends it again.
func TestPageWebhooks(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.startWorker()
	other := openOtherSystem(t)
	oskar := c.reader(c.signIn("Oskar", "operator")).open("ops/webhooks")
	oskar.do(
		browser.See(".empty", "No other system"),
		browser.Click("button", "Add an endpoint"),
		browser.Fill("Address", "ftp://hooks.example.org"),
		browser.Click("button.primary", "Add"),
		browser.See(".fault", "begins with"),
		browser.Fill("Address", other.server.URL+"/in?key=secret"),
		browser.Fill("Description", "Work orders"),
		browser.Click("dialog button.primary", "Add"),
		browser.See("dialog h2", "Signing secret"),
	)
	secret, err := browser.Ask[string](oskar.Tab, `document.querySelector('dialog input').value`)
	if err != nil || !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("the page shows the secret %q, error %v", secret, err)
	}
	other.trust(secret)
	other.answer(http.StatusBadRequest)
	oskar.do(
		browser.Click("dialog button", "Send a test"),
		browser.See("[role=status] .state", "Given up"),
		browser.See(".timeline .badge", "400"),
		browser.Click("summary", "Request and answer"),
		browser.See("details pre", "webhook-id"),
	)
	other.answer(http.StatusNoContent)
	oskar.do(
		browser.Until(`(scrollTo(0, 0), true)`), // from below the header
		browser.Click("button", "Send again"),
		browser.See("[role=status] .state", "Delivered"),
		browser.Click("a.back", "Log"),
		browser.See(".rows li", "webhook.test"),
		browser.Click("button", "Disable"),
		browser.See(".state", "Disabled: by an operator"),
		browser.Click("button", "Enable"),
		browser.Click("dialog button.primary", "Enable"),
		browser.See(".state", "Enabled"),
		browser.Click("button", "Recover"),
		browser.Click("dialog button", "Dry run"),
		browser.See("dialog .note", "Nothing was sent"),
		browser.Click("dialog button", "Close"),
		browser.Click("nav a", "Audit"),
		browser.See(".rows li", "Endpoint enabled"),
	)
	if events := other.await(1); events[0].Type != "webhook.test" {
		t.Errorf("the other system had %+v, want a test", events)
	}
	oskar.checkFaults()
}
