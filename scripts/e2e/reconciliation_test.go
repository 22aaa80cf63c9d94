package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A reconciling is a stack whose groups compare from the beginning.
type reconciling struct {
	*stack
	operator *client.Client
}

// reconcile prepares c: a message is missing after that time, and the group of
// notifications compares from the first message on.
func (c *stack) reconcile(after time.Duration) *reconciling {
	c.t.Helper()
	for _, p := range []*process{c.notification, c.worker} {
		p.env["RECONCILIATION_AFTER"], p.env["RETRY_MAX_ATTEMPTS"], p.env["RETRY_DELAYS"] = after.String(), "2", "1s"
	}
	execute(c.t, c.notificationDB, `insert into reconciliation_starts (consumer_group, restores, started_at) values ('notifications', 0, now() - interval '1 day')`)
	return &reconciling{stack: c}
}

// summary is what operators are shown of the group of notifications.
type summary struct {
	Group                          string
	Missing, Unknown, Awaited, Gap int64
	ComparedUntil                  time.Time `json:"compared_until"`
}

func (r *reconciling) summary() (s summary) {
	var answer struct{ Groups []summary }
	if r.operator.Do(r.t.Context(), http.MethodGet, "/admin/notifications/reconciliation", nil, &answer) != nil {
		return s // the service is away
	}
	i := slices.IndexFunc(answer.Groups, func(s summary) bool { return s.Group == "notifications" })
	if i < 0 {
		return s
	}
	return answer.Groups[i]
}

// light returns the state and the cause of the operators' light.
func (r *reconciling) light() string {
	var health struct {
		Parts []struct{ Name, State, Cause string }
	}
	if err := r.operator.Do(r.t.Context(), http.MethodGet, "/admin/notifications/health", nil, &health); err != nil {
		return "away"
	}
	for _, part := range health.Parts {
		if part.Name == "reconciliation" {
			return strings.TrimSpace(part.State + " " + part.Cause)
		}
	}
	return "none"
}

// missing returns the ids of the messages of a group that got lost.
func (r *reconciling) missing(group string) (ids []uuid.UUID) {
	var page struct {
		Messages []struct {
			ID uuid.UUID `json:"message_id"`
		}
	}
	err := r.operator.Do(r.t.Context(), http.MethodGet, "/admin/notifications/reconciliation/messages?state=missing&group="+group, nil, &page)
	if err != nil {
		return nil
	}
	for _, m := range page.Messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// An effect that somebody removes by hand is named within two minutes, and the
// operators' light is red. One call publishes the message again, and it is found. The
// notification that was deleted with the record is named by its id alone until an operator
// closes it; then the light is green.
func TestLostMessageIsNamedAndPublishedAgain(t *testing.T) {
	t.Parallel()
	const after, within = 10 * time.Second, 2 * time.Minute
	r := prepareStack(t).reconcile(after)
	r.start()
	r.operator = r.userOf("otto", "operator")
	officials := watch(t, r.signIn("Olga", "official"))
	ana := r.signIn("Ana", "resident")
	for range 3 {
		file(t, ana, "Pothole")
	}
	officials.await(3)
	handled := func() (n int) {
		_ = r.notificationDB.QueryRow(t.Context(), `select count(*) from processed_messages where consumer = $1`, topology.Queue(event.ReportCreatedKey)).Scan(&n)
		return n
	}
	eventually.True(t, "three messages are handled", func() bool { return handled() == 3 })

	lost := time.Now()
	var id string
	err := r.notificationDB.QueryRow(t.Context(), `
		with lost as (select message_id from processed_messages where consumer = $1 order by message_id limit 1),
		     effect as (delete from notifications where message_id in (select message_id from lost))
		delete from processed_messages where message_id in (select message_id from lost) returning message_id`,
		topology.Queue(event.ReportCreatedKey)).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	var named []uuid.UUID
	eventually.True(t, "the message is named", func() bool { named = r.missing("notifications"); return len(named) > 0 })
	took := time.Since(lost)
	if want := uuid.MustParse(id); took > within || !slices.Equal(named, []uuid.UUID{want}) {
		t.Errorf("%v are named after %s, want %v within %s", named, took, want, within)
	}
	eventually.True(t, "the light is red", func() bool { return r.light() == "bad missing" })

	var done struct{ Republished, Unpublished, Gone int64 }
	again := time.Now()
	body := map[string]any{"message_ids": named, "reason": "removed by hand"}
	if err := r.operator.Do(t.Context(), http.MethodPost, "/admin/outbox/messages/republish", body, &done); err != nil || done.Republished != 1 {
		t.Fatalf("published again: %+v, %v; want 1", done, err)
	}
	eventually.True(t, "the deleted notification is left", func() bool { return r.summary().Missing == 0 && r.light() == "bad deleted" })
	closing := map[string]any{"group": "streams", "message_ids": r.missing("streams"), "reason": "removed by hand"}
	if err := r.operator.Do(t.Context(), http.MethodPost, "/admin/notifications/reconciliation/messages/close", closing, nil); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the light is green", func() bool { return r.light() == "good" })
	fmt.Printf("reconciliation named_after=%.0f found_after=%.0f\n", took.Seconds(), time.Since(again).Seconds())
	if n := handled(); n != 3 || len(r.missing("notifications")) != 0 {
		t.Errorf("%d messages are handled and %v missing, want 3 and none", n, r.missing("notifications"))
	}
}

// A broker that loses its disk with a backlog, and replicas that are replaced one
// by one, raise no alarm: everything is compared in the end, and nothing was missing at
// any time.
func TestReconciliationRaisesNoFalseAlarm(t *testing.T) {
	t.Parallel()
	const backlog = 40
	server := rabbittest.StartServer(t)
	r := prepareStackAt(t, server.URL(), server.ManagementURL()).reconcile(time.Minute)
	r.start()
	r.operator = r.userOf("otto", "operator")
	officials, ana := watch(t, r.signIn("Olga", "official")), r.signIn("Ana", "resident")
	file(t, ana, "Before the disk is lost")
	officials.await(1)
	alarms := make(chan string, 1)
	watching, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			s, light := r.summary(), r.light()
			if s.Missing > 0 || s.Gap > 0 || light == "bad missing" {
				select {
				case alarms <- fmt.Sprintf("%+v, light %s", s, light):
				default:
				}
			}
			select {
			case <-watching:
				return
			case <-time.After(time.Second): // there is no event to wait for
			}
		}
	}()

	r.notification.kill()
	for range backlog {
		file(t, ana, "In the backlog")
	}
	r.awaitPublished(time.Time{})
	server.Destroy()
	lost := time.Now()
	server.Start()
	r.notification.start()
	officials.await(1 + backlog)
	r.awaitPublished(lost)

	// Replicas are replaced.
	for _, p := range []*process{r.notification, r.report} {
		p.terminate()
		p.start()
		r.awaitReplica(p)
		file(t, ana, "Between replicas")
	}
	officials.await(3 + backlog)
	r.awaitPublished(lost)
	last := time.Now()
	eventually.NothingMissing(t, "everything is compared and found", func() string {
		if s := r.summary(); s.ComparedUntil.Before(last) || s.Awaited+s.Unknown+s.Missing+s.Gap > 0 {
			return fmt.Sprintf("%+v at %s", s, last)
		}
		return ""
	})
	close(watching)
	<-watched
	select {
	case alarm := <-alarms:
		t.Errorf("false alarm: %s", alarm)
	default:
	}
	if n := r.compared(); n < 3+backlog {
		t.Errorf("%d messages were compared, want %d or more", n, 3+backlog)
	}
}

// After a restore of the database of notifications, the messages whose effects were lost
// with it are unknown and not missing, until they are published again as docs/backup.md
// says.
func TestRestoredDatabaseIsUnknown(t *testing.T) {
	t.Parallel()
	const lost = 2
	r := prepareStack(t).reconcile(10 * time.Second)
	r.start()
	began := time.Now()
	r.operator = r.userOf("otto", "operator")
	officials, ana := watch(t, r.signIn("Olga", "official")), r.signIn("Ana", "resident")
	file(t, ana, "In the backup")
	officials.await(1)
	r.checkRelayDone()
	r.dump(r.notificationDB, "notifications")
	for range lost {
		file(t, ana, "After the backup")
	}
	officials.await(1 + lost)
	r.checkRelayDone()
	r.report.kill() // before it has named these messages
	r.notification.kill()
	r.restore(r.notificationDB, "notifications")
	r.start()

	eventually.NothingMissing(t, "the messages are unknown", func() string {
		s := r.summary()
		if s.Missing > 0 {
			t.Fatalf("they are missing: %+v", s)
		}
		if light := r.light(); s.Unknown != lost || light != "warning unknown" {
			return fmt.Sprintf("%+v, light %s", s, light)
		}
		return ""
	})
	r.command(r.report, "republish", "-since", began.Add(-time.Minute).Format(time.RFC3339))
	eventually.NothingMissing(t, "they are found", func() string {
		if s, light := r.summary(), r.light(); s.Unknown != 0 || s.Missing > 0 || light != "good" {
			return fmt.Sprintf("%+v, light %s", s, light)
		}
		return ""
	})
}

// compared returns how many messages were found in all.
func (r *reconciling) compared() (n int) {
	r.t.Helper()
	err := r.notificationDB.QueryRow(r.t.Context(), `
		select sum(expected) from reconciliation_manifests where consumer_group = 'notifications' and state = 'complete'`).Scan(&n)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}
