package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// An erasure is what operators see of one.
type erasure struct {
	ID      uuid.UUID        `json:"id"`
	Actor   string           `json:"actor"`
	State   string           `json:"state"`
	Removed map[string]int64 `json:"removed"`
	Left    []string         `json:"left"`
}

// checkRefused waits until an open page is refused, because its user was erased.
func checkRefused(t *testing.T, page <-chan error) {
	t.Helper()
	select {
	case err := <-page:
		if err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("the open page ends with %v, want 401", err)
		}
	case <-time.After(eventually.Patience):
		t.Error("the open page is still served")
	}
}

// No byte of an erased person is left in any table, queue, dead letter, log or
// answer. Their reports and votes stay, and are nobody's.
// That holds for messages that were on their way, for dead letters, for a page
// that is still open, and although a service dies on the way.
func TestErasureCanary(t *testing.T) {
	t.Parallel()
	c := releaseLoneCanary(t)
	ben, olga, pavel := c.signIn("Ben", "resident"), c.signIn("Olga", "official"), c.signIn("Pavel", "operator")
	public := must(c.user.CreateReport(t.Context(), draft("Own, and public"), "Idempotency-Key", "1"))
	in := draft("Own, and anonymous")
	in.PrivacyLevel = "anonymous"
	anonymous := must(c.user.CreateReport(t.Context(), in, "Idempotency-Key", "2"))
	bens := file(t, ben, "Ben's")
	c.reports = []client.Report{public, anonymous, bens}
	vote(t, c.user, bens, "upvote")
	vote(t, ben, public, "upvote")
	vote(t, ben, anonymous, "downvote")
	move(t, olga, public, "in_progress", "Seen")
	follow(t, c.user, bens)
	c.askForMails(olga, anonymous, public)
	eventually.True(t, "the canary has their notifications", func() bool {
		page, err := c.user.Notifications(t.Context(), "", 10)
		return err == nil && len(page.Notifications) == 5
	})
	page := openPage(t, c.user)

	// On their way during the erasure: messages to the canary, one that names them,
	// and two that will be dead letters, one of which names them in its body.
	c.notification.kill()
	vote(t, ben, public, "downvote")
	vote(t, ben, anonymous, "upvote")
	vote(t, c.user, bens, "downvote")
	move(t, olga, anonymous, "resolved", "Done")
	giveVerdict(t, c.user, anonymous, false, "It is as it was. "+c.user.ID)
	c.checkOutboxPublished()
	ch := c.channel()
	named := strings.Replace(voteBody(bens.ID, 7), `"voter_id":"v"`, `"voter_id":"`+c.user.ID+`"`, 1)
	for _, body := range []string{strings.Replace(named, `"new_score":1`, `"new_score":"one"`, 1), named[:len(named)-3]} {
		c.publish(ch, event.VoteReceivedKey, c.message(event.VoteReceivedKey, bens.ID, c.user.ID, body))
	}

	// The reports database, by the canary, whom the list does not name. The service dies in
	// the middle.
	if err := c.user.Do(t.Context(), http.MethodDelete, "/reports/mine/data", nil, nil); err != nil {
		t.Fatalf("erase oneself: %v", err)
	}
	requested := c.requestErasure(pavel, "/admin/reports/erasures")
	if requested.Actor != "self" {
		t.Errorf("the actor is %q, want self", requested.Actor)
	}
	if again := c.requestErasure(pavel, "/admin/reports/erasures"); again.ID != requested.ID {
		t.Errorf("asked for again, another erasure begins: %v and %v", requested.ID, again.ID)
	}
	c.awaitErasure(pavel, "/admin/reports/erasures", func(e erasure) bool { return len(e.Left) < 5 && len(e.Left) > 0 })
	c.report.kill()
	c.report.start()
	// The notifications database, by the command, while no replica runs.
	c.eraseByCommand()
	c.notification.start()
	c.awaitReady()
	done := c.awaitErasure(pavel, "/admin/reports/erasures", func(e erasure) bool { return e.State == "done" })
	done.checkSteps(t, "reports", "votes", "messages")
	done = c.awaitErasure(pavel, "/admin/notifications/erasures", func(e erasure) bool { return e.State == "done" })
	if done.Removed["contact"] != 5 || done.Removed["delayed_messages"] != 1 {
		t.Errorf("removed %v, want the address with a digest, a consent, a code and its mail, and a message that waits", done.Removed)
	}

	eventually.True(t, "everything has arrived", func() bool {
		waiting, letters := 0, 0
		for _, q := range c.queues() {
			waiting += q.Messages
		}
		err := c.notificationDB.QueryRow(t.Context(), `select count(*) from dead_letters`).Scan(&letters)
		return err == nil && waiting == 0 && letters == 2
	})
	checkRefused(t, page)
	if _, err := c.user.CreateReport(t.Context(), draft("Once more")); client.StatusOf(err) != http.StatusUnauthorized {
		t.Errorf("the old token files a report: %v", err)
	}
	checkWhatStays(t, ben, []client.Report{public, anonymous}, bens)

	c.searchAllTables()
	c.searchPlainAnswers()
	c.searchProcesses()
	t.Logf("searched %d places for %d forms", c.leaks.calls, len(c.leaks.forms))
}

// checkSteps fails the test if a step of the erasure had nothing to remove: it would
// prove nothing about it.
func (e erasure) checkSteps(t *testing.T, steps ...string) {
	t.Helper()
	for _, step := range steps {
		if e.Removed[step] == 0 {
			t.Errorf("step %s removed nothing", step)
		}
	}
}

// askForMails gives the canary's address, to which a mail with a code waits to be
// sent, as nothing sends mails here; a message that names the canary waits, too. Before, the
// canary answers a question about the one report, and gets another about the other.
func (c *canary) askForMails(olga *client.Client, report, asked client.Report) {
	c.t.Helper()
	askReporter(c.t, olga, report, "Do you still live there, "+c.words+"?")
	answerQuestion(c.t, c.user, report, c.words)
	askReporter(c.t, olga, asked, "And here?")
	for _, request := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPut, "/me/contact", map[string]string{"address": c.address, "language": "id", "zone": "Asia/Jakarta"}},
		{http.MethodPost, "/me/contact/code", nil},
		{http.MethodPut, "/me/digest", map[string]string{"frequency": "daily"}},
		{http.MethodPut, "/me/mail-consents", map[string]any{"report_id": report.ID, "mail": true}},
	} {
		if err := c.user.Do(c.t.Context(), request.method, request.path, request.body, nil); err != nil {
			c.t.Fatalf("ask for mails: %s: %v", request.path, err)
		}
	}
	execute(c.t, c.notificationDB, `
		insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
		values ($1, 'waits', $2, now() + interval '1 day', convert_to('{"voter_id": ' || $3::text, 'utf8'), '{}', '{}')`,
		topology.Queue(event.VoteReceivedKey), event.VoteReceivedKey, c.user.ID)
}

// eraseByCommand erases the canary from the notifications database.
func (c *canary) eraseByCommand() {
	c.t.Helper()
	erase := exec.CommandContext(c.t.Context(), c.notification.path, "erase")
	erase.Stdin = strings.NewReader(c.user.ID + "\n")
	for name, value := range c.notification.env {
		erase.Env = append(erase.Env, name+"="+value)
	}
	output, err := erase.CombinedOutput()
	if err != nil {
		c.t.Fatalf("notification-service erase: %v\n%s", err, output)
	}
	c.leaks.check("what the command wrote", output)
}

// openPage opens the stream of a page, and returns what will say why it ended.
func openPage(t *testing.T, user *client.Client) <-chan error {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	ended := make(chan error, 1)
	open := make(chan struct{})
	first := sync.OnceFunc(func() { close(open) })
	go func() {
		ended <- (&client.Stream{
			Client: user, Path: "/notifications/stream", MaxWait: 200 * time.Millisecond,
			Raw: func(sse.Event) { first() },
		}).Run(ctx)
	}()
	select {
	case <-open:
	case err := <-ended:
		t.Fatalf("the page's stream ends before it has begun: %v", err)
	}
	return ended
}

// checkWhatStays sees that the reports of whoever was erased are anonymous, with
// the votes of others, and that their vote on another's report counts.
func checkWhatStays(t *testing.T, other *client.Client, own []client.Report, others client.Report) {
	t.Helper()
	for _, r := range own {
		seen, err := other.Report(t.Context(), r.ID)
		if err != nil || seen.ReporterName != "" || seen.PrivacyLevel != "anonymous" || seen.Mine || seen.MyVote == "none" {
			t.Errorf("the erased person's report is %+v (error %v), want an anonymous one with the other's vote", seen, err)
		}
	}
	if seen, err := other.Report(t.Context(), others.ID); err != nil || seen.Score != -1 {
		t.Errorf("the other's report has the score %d (error %v), want -1: the erased person's vote counts", seen.Score, err)
	}
}

// searchAllTables searches both databases, private tables included.
func (c *canary) searchAllTables() {
	c.t.Helper()
	for database, db := range map[string]*pgxpool.Pool{"reports": c.reportDB, "notifications": c.notificationDB} {
		for _, table := range tables(c.t, db) {
			var text string
			if err := db.QueryRow(c.t.Context(), `select coalesce(string_agg(r::text, E'\n'), '') from `+table+` r`).Scan(&text); err != nil {
				c.t.Fatalf("read %s: %v", table, err)
			}
			c.leaks.check(database+", table "+table, []byte(text))
		}
	}
}

// releaseLoneCanary is a canary without a screen or spies, who may be erased.
func releaseLoneCanary(t *testing.T) *canary {
	t.Helper()
	mark := strings.ReplaceAll(uuid.NewString(), "-", "")
	c := &canary{stack: startStack(t)}
	id, name := "Id-"+mark[:12]+"-Kanari", "Nama "+mark[12:24]+" Kanari"
	c.address = mark[24:] + ".kanari@surel.test"
	c.words = "Kata " + uuid.NewString()[:13]
	c.leaks = newLeakDetector(t, id, name, c.address, c.words)
	c.user = c.As(id, token(map[string]any{"sub": id, "name": name, "role": "resident"}))
	return c
}

// searchPlainAnswers looks at what each role is shown of what is left.
func (c *canary) searchPlainAnswers() {
	paths := []string{
		"/reports?limit=100", "/notifications?limit=100", "/admin/outbox/messages?limit=100", "/admin/outbox/audit?limit=100",
		"/admin/reports/erasures", "/admin/notifications/erasures", "/admin/dlq/messages?limit=100", "/admin/dlq/export", "/admin/dlq/audit?limit=100",
	}
	for _, r := range c.reports {
		paths = append(paths, "/reports/"+r.ID.String(), "/reports/"+r.ID.String()+"/history")
	}
	for _, role := range []string{"resident", "operator", "official"} {
		if role == "official" {
			for _, r := range c.reports {
				paths = append(paths, "/reports/"+r.ID.String()+"/dialogue")
			}
		}
		reader, good := c.userOf("other-"+role, role), 0
		for _, path := range paths {
			status, answer, err := operation{method: http.MethodGet, path: path}.send(c.t.Context(), c.gateway.URL, reader.Token())
			if err != nil {
				c.t.Errorf("GET %s: %v", path, err)
			}
			c.leaks.check("GET "+path+" as "+role, answer)
			if status == http.StatusOK {
				good++
			}
		}
		if good < len(paths)/2 {
			c.t.Errorf("%d of %d paths answered %s: the test proves little", good, len(paths), role)
		}
	}
}

// requestErasure has an operator ask for the canary's.
func (c *canary) requestErasure(operator *client.Client, path string) (state erasure) {
	c.t.Helper()
	wrong := map[string]string{"user_id": c.user.ID, "confirm_user_id": c.user.ID + "x"}
	if err := operator.Do(c.t.Context(), http.MethodPost, path, wrong, nil); client.StatusOf(err) != http.StatusBadRequest {
		c.t.Errorf("an erasure that is not confirmed: %v", err)
	}
	right := map[string]string{"user_id": c.user.ID, "confirm_user_id": c.user.ID}
	if err := c.user.Do(c.t.Context(), http.MethodPost, path, right, nil); client.StatusOf(err)/100 != 4 {
		c.t.Errorf("an erasure by a resident: %v", err)
	}
	if err := operator.Do(c.t.Context(), http.MethodPost, path, right, &state); err != nil {
		c.t.Fatalf("request erasure: %v", err)
	}
	return state
}

// awaitErasure returns the latest erasure once it is as ok wants it.
func (c *canary) awaitErasure(operator *client.Client, path string, ok func(erasure) bool) (latest erasure) {
	c.t.Helper()
	eventually.True(c.t, fmt.Sprintf("an erasure of %s goes on", path), func() bool {
		var list struct{ Erasures []erasure }
		if operator.Do(c.t.Context(), http.MethodGet, path, nil, &list) != nil || len(list.Erasures) != 1 {
			return false
		}
		latest = list.Erasures[0]
		return ok(latest)
	})
	return latest
}
