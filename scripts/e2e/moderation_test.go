package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// An official hides a report, or restricts it to the city, while votes on it pour in, and the replica that works
// on the messages is killed in between. Once all messages are handled, nobody is
// answered, replayed or sent a word of it: not by the replica that comes back, not
// by the other one, which had passed the words on, and not by what waited for
// another system.
func TestHiddenUnderLoadWithAReplicaKilled(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]map[string]string{"hidden": {"reason": "It names somebody"}, "visibility": {"visibility": "officials"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			concealUnderLoad(t, name, body)
		})
	}
}

func concealUnderLoad(t *testing.T, name string, body map[string]string) {
	t.Helper()
	c := startStack(t)
	other := newProcess(t, "notification-service", c.notification.env)
	other.start()
	replica := client.New(other.url())
	t.Cleanup(replica.CloseIdle)
	ana, carl, olga, pavel := c.signIn("Ana", "resident"), c.signIn("Carl", "resident"), c.userOf("olga", "official"), c.userOf("pavel", "operator")
	system := openOtherSystem(t)
	system.register(c, pavel)

	in := draft("A Zebra on the crossing")
	in.Description, in.PrivacyLevel = "Zebra", "anonymous"
	report := must(ana.CreateReport(t.Context(), in))
	follow(t, carl, report)
	anas, carls, elsewhere := watch(t, ana), watch(t, carl), watch(t, replica.As(ana.ID, ana.Token()))
	move(t, olga, report, "in_progress", "Zebra seen")
	anas.await(1)
	carls.await(1)
	elsewhere.await(1)

	load := c.startLoad(c.signIn("Somebody", "resident"), report, 4)
	anas.await(40)
	c.notification.kill()
	path := "/reports/" + report.ID.String()
	began := time.Now()
	if err := olga.Do(t.Context(), http.MethodPut, path+"/"+name, body, nil); err != nil {
		t.Fatalf("conceal the report: %v", err)
	}
	eventually.True(t, "the second replica has handled the message", func() bool {
		var hidden bool
		err := c.notificationDB.QueryRow(t.Context(), `select exists (select from moderated_reports where hidden)`).Scan(&hidden)
		return err == nil && hidden
	})
	t.Logf("%v from the request to the words gone, with a replica killed", time.Since(began).Round(time.Millisecond))
	c.notification.start()
	load.stop()
	c.awaitHandled()

	for name, user := range map[string]*client.Client{"nobody": c.Client, "Carl": carl, "an operator": pavel} {
		for _, path := range []string{path, path + "/history", path + "/preview", path + "/photos"} {
			if err := user.Do(t.Context(), http.MethodGet, path, nil, nil); client.StatusOf(err) != http.StatusNotFound {
				t.Errorf("%s: %s: %v, want 404", name, path, err)
			}
		}
		for _, path := range []string{"/reports?q=Zebra", "/map/points?zoom=3&bbox=-180,-90,180,90&q=Zebra"} {
			c.searchFor(name, path, user)
		}
	}
	for name, user := range map[string]*client.Client{"Ana": ana, "Carl": carl, "Olga": olga} {
		c.searchNotifications(name, user)
		for place, at := range map[string]*client.Client{"the replica that was killed": user, "the other one": replica.As(user.ID, user.Token())} {
			c.searchReplay(name+" at "+place, at, user.ID)
		}
	}
	for _, path := range []string{"/reports/queue", "/reports/export", "/reports/queue?q=Zebra"} {
		if name == "hidden" { // officials work on what only they and the reporter see
			c.searchFor("Olga", path, olga)
		}
	}
	for _, path := range []string{"/admin/deliveries/1", system.path + "/deliveries"} {
		c.searchFor("the operator", path, pavel)
	}
	var left int
	if err := c.notificationDB.QueryRow(t.Context(), `
		select (select count(*) from notifications where data::text like '%Zebra%')
		  + (select count(*) from deliveries where convert_from(body, 'UTF8') like '%Zebra%')`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows have the words (error %v)", left, err)
	}
	// None is lost over it: what was committed before is there, without its words.
	var votes, told int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from outbox_messages where report_id = $1 and routing_key <> 'report.created'`, report.ID).Scan(&votes); err != nil {
		t.Fatal(err)
	}
	if err := c.notificationDB.QueryRow(t.Context(), `
		select count(*) from notifications n join streams s on s.id = n.stream_id where s.name = 'user:' || $1 and n.report_id = $2`, ana.ID, report.ID).Scan(&told); err != nil {
		t.Fatal(err)
	}
	if told != votes {
		t.Errorf("Ana has %d notifications of %d messages", told, votes)
	}
}

// awaitHandled returns once every message of the outbox had its effect.
func (c *stack) awaitHandled() {
	c.t.Helper()
	eventually.True(c.t, "all messages are handled", func() bool {
		var left, messages, handled int
		err := c.reportDB.QueryRow(c.t.Context(), `
			select count(*) filter (where status <> 'published'), count(*) filter (where routing_key <> $1) from outbox_messages`, string(event.PhotoUploadedKey)).Scan(&left, &messages)
		if err == nil {
			err = c.notificationDB.QueryRow(c.t.Context(), `select count(*) from processed_messages where consumer not like '%webhooks'`).Scan(&handled)
		}
		return err == nil && left == 0 && handled == messages
	})
}

// searchNotifications makes sure that nothing that a user is listed has the word.
func (c *stack) searchNotifications(name string, user *client.Client) {
	c.t.Helper()
	for cursor := ""; ; {
		page, err := user.Notifications(c.t.Context(), cursor, 100)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, n := range page.Notifications {
			if strings.Contains(fmt.Sprintf("%+v", n), "Zebra") {
				c.t.Errorf("%s is listed %+v", name, n)
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return
		}
	}
}

// searchFor makes sure that an answer does not have the word.
func (c *stack) searchFor(who, path string, user *client.Client) {
	c.t.Helper()
	for _, answer := range c.answers(user, []string{path}) {
		if strings.Contains(strings.TrimPrefix(answer, path), "Zebra") {
			c.t.Errorf("%s: %s has the words: %.500s", who, path, answer)
		}
	}
}

// searchReplay reads all of a user's own stream again, from its beginning.
func (c *stack) searchReplay(where string, user *client.Client, id string) {
	c.t.Helper()
	var epoch string
	var last int64
	if err := c.notificationDB.QueryRow(c.t.Context(), `select epoch, last_seq from streams where name = 'user:' || $1`, id).Scan(&epoch, &last); err != nil {
		c.t.Fatal(err)
	}
	if last == 0 {
		return
	}
	begin := fmt.Sprintf("v1.%s.0", epoch)
	if id == "olga" {
		return // her cursor has two positions; her notifications are in the list
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Patience)
	defer cancel()
	var mu sync.Mutex
	var seen int64
	stream := &client.Stream{Client: user, Path: "/notifications/stream", LastID: begin, MaxWait: 200 * time.Millisecond, Raw: func(e sse.Event) {
		if e.Type != sse.Notification {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(string(e.Data), "Zebra") {
			c.t.Errorf("%s: the replay has %s", where, e.Data)
		}
		if seen++; seen == last {
			cancel()
		}
	}}
	_ = stream.Run(ctx)
	mu.Lock()
	defer mu.Unlock()
	if seen < last {
		c.t.Errorf("%s: the replay has %d of %d notifications", where, seen, last)
	}
}
