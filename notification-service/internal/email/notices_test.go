package email_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
)

// notices has the city name addresses of its own people.
func (w *world) notices() {
	w.config.OfficialsAddress, w.config.OperatorsAddress, w.config.NoticesLanguage = "workbench@city.example.org", "operations@city.example.org", "en"
	w.store = postgres.New(w.pool, postgres.Options{Mail: true, MailDue: 2 * time.Minute, Notices: []string{email.Officials, email.Operators}})
}

// overdue tells officials of reports that are overdue at a level, in one batch.
func (w *world) overdue(level int32, category string, n int) {
	w.t.Helper()
	var batch []postgres.Message
	for range n {
		m := &event.ReportOverdue{
			Subject: subject(uuid.New(), "ann", "Canary title", false), CategoryID: int32(len(category)), CategoryName: category,
			DueAt: time.Now().Unix(), Level: level,
		}
		batch = append(batch, postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, "")})
	}
	for range 2 { // the broker delivers them twice
		if _, err := w.store.Effects.Apply(w.t.Context(), "test", batch); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Officials get one mail about all reports that were overdue three times over in an
// hour, and none about the levels before. It names none of them: some are
// anonymous.
func TestOverdueNotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.notices()
	w.overdue(1, "Lights", 5)
	w.overdue(2, "Lights", 5)
	if got := w.number(`select count(*) from deliveries`); got != 0 {
		t.Fatalf("%d mails about levels that the page shows, want none", got)
	}
	w.overdue(3, "Lights", 2)
	w.overdue(1, "Lights", 1)
	w.overdue(3, "Roads", 1)
	w.overdue(3, "Lights", 1)
	if got := w.number(`select count(*) from deliveries where due_at > now()`); got != 1 {
		t.Fatalf("%d mails, want one for the hour", got)
	}
	w.start()
	w.due()
	mail := w.server.waitFor(1)[0]
	w.waitFor(`select count(*) from deliveries where state <> 'done'`, 0)
	subject, text, html := mail.read(t)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if mail.to != "workbench@city.example.org" || subject != "4 reports are long overdue" ||
		!strings.Contains(text, "Lights\n  3 reports") || !strings.Contains(text, "Roads\n  1 report") {
		t.Errorf("to %s: %s\n%s", mail.to, subject, text)
	}
	if bytes.Contains(mail.data, []byte("\nList-Unsubscribe")) || bytes.Contains(mail.data, []byte("Canary")) || strings.Contains(text+html, "Canary") {
		t.Errorf("a notice names a report, or ends by a link:\n%s", mail.data)
	}
}

// Operators are mailed that an endpoint is disabled, unless one of them has enabled
// it since. The part of its URL behind the host stays here.
func TestDisabledEndpointNotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.notices()
	disabled, mended := w.endpoint("https://tickets.example.org/hook?key=secret"), w.endpoint("https://other.example.org/")
	for id, reason := range map[uuid.UUID]webhook.Reason{disabled: webhook.Gone, mended: webhook.Failing} {
		for range 2 { // two workers see it
			if _, err := w.store.Endpoints.GiveUp(t.Context(), id, reason); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.exec(`update webhook_endpoints set state = 'enabled', state_reason = '' where id = $1`, mended)
	w.start()
	mail := w.server.waitFor(1)[0]
	w.waitFor(`select count(*) from deliveries where state = 'done' and kind = 'endpoint'`, 1)
	w.waitFor(`select count(*) from deliveries where state = 'cancelled' and last_class = 'empty'`, 1)
	subject, text, html := mail.read(t)
	if mail.to != "operations@city.example.org" || !strings.Contains(subject, "tickets.example.org") || !strings.Contains(text, "410") {
		t.Errorf("to %s: %s\n%s", mail.to, subject, text)
	}
	if strings.Contains(text+html, "secret") {
		t.Errorf("the mail has what is behind the host of the URL:\n%s", text)
	}
}

// Operators are mailed once that an endpoint has failed for half of the time after which
// it is disabled, unless it has succeeded since, and again when it fails for that long
// another time.
func TestFailingEndpointNotice(t *testing.T) {
	t.Parallel()
	const disableAfter = 120 * time.Hour
	w := newWorld(t)
	w.notices()
	failing, young := w.endpoint("https://tickets.example.org/hook?key=secret"), w.endpoint("https://other.example.org/")
	w.failsFor(failing, 61*time.Hour)
	w.failsFor(young, 59*time.Hour)
	look := func(warned, marked int) {
		t.Helper()
		ids, n, err := w.store.Endpoints.WarnOfFailing(t.Context(), disableAfter)
		if err != nil || len(ids) != warned || n != marked {
			t.Fatalf("warned of %d, %d marked (error %v), want %d and %d", len(ids), n, err, warned, marked)
		}
	}
	look(1, 1)
	look(0, 1) // another worker
	w.start()
	mail := w.server.waitFor(1)[0]
	subject, text, html := mail.read(t)
	if mail.to != "operations@city.example.org" || !strings.Contains(subject, "tickets.example.org") || !strings.Contains(text, "59 hours") {
		t.Errorf("to %s: %s\n%s", mail.to, subject, text)
	}
	if strings.Contains(text+html, "secret") {
		t.Errorf("the mail has what is behind the host of the URL:\n%s", text)
	}
	w.exec(`update lanes set failing_since = null where lane = $1::text`, failing.String())
	look(0, 0)
	w.failsFor(failing, 61*time.Hour)
	look(1, 1)
	if _, err := w.store.Endpoints.GiveUp(t.Context(), failing, webhook.Failing); err != nil {
		t.Fatal(err)
	}
	look(0, 0)
	w.waitFor(`select count(*) from deliveries where state in ('done', 'cancelled') and kind = 'failing_endpoint'`, 2)
}

// failsFor lets the lane of an endpoint have failed for that long.
func (w *world) failsFor(endpoint uuid.UUID, d time.Duration) {
	w.t.Helper()
	w.exec(`insert into lanes (channel, lane, failing_since) values ('webhook', $1::text, now() - $2::interval)
		on conflict (channel, lane) do update set failing_since = excluded.failing_since`, endpoint.String(), d)
}

// A city that named nobody has no notices, and one that takes the name away again
// has those cancelled that wait.
func TestNoticesToNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.overdue(3, "Lights", 1)
	if _, err := w.store.Endpoints.GiveUp(t.Context(), w.endpoint("https://tickets.example.org/"), webhook.Failing); err != nil {
		t.Fatal(err)
	}
	if got := w.number(`select count(*) from deliveries`); got != 0 {
		t.Fatalf("%d notices, want none", got)
	}
	w.store = postgres.New(w.pool, postgres.Options{Mail: true, MailDue: 2 * time.Minute, Notices: []string{email.Officials}})
	w.overdue(3, "Lights", 1)
	w.start()
	w.due()
	w.waitFor(`select count(*) from deliveries where state = 'cancelled' and last_class = 'no_contact'`, 1)
}

// endpoint registers an endpoint of webhooks.
func (w *world) endpoint(address string) uuid.UUID {
	w.t.Helper()
	id := uuid.New()
	w.exec(`insert into webhook_endpoints (id, url, secret) values ($1, $2, '')`, id, address)
	return id
}
