package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// Pages go on where the one before ends, whatever comes in between.
func TestListPages(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Resident)
	s.votes("ann", 25)
	s.votes("bob", 3)
	seen := make(map[uuid.UUID]bool)
	path := "/notifications?limit=10"
	for want := 10; path != ""; want = min(10, 25-len(seen)) {
		var page notificationapi.NotificationPage
		header := s.do(call{method: "GET", path: path, token: ann}, 200, &page)
		if len(page.Notifications) != want {
			t.Errorf("%s: %d notifications, want %d", path, len(page.Notifications), want)
		}
		for _, n := range page.Notifications {
			if seen[n.ID] {
				t.Errorf("%s: %s again", path, n.ID)
			}
			seen[n.ID] = true
			if n.Score == nil || *n.Score != 0 || n.Read {
				t.Errorf("notification %+v, want score 0 and unread", n)
			}
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), ">")
		s.votes("ann", 1) // not on any of these pages
	}
	if len(seen) != 25 {
		t.Errorf("%d notifications on all pages, want 25", len(seen))
	}
}

// Transactions that run at the same time may get their numbers in another order
// than their times. The pages leave none of them out.
func TestListPagesWhateverTheTimes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Official)
	var page notificationapi.NotificationPage
	s.do(call{method: "GET", path: "/notifications", token: ann}, 200, &page) // from here on
	s.votes("ann", 40)
	for range 10 {
		s.report()
	}
	if _, err := s.pool.Exec(t.Context(), `update notifications set created_at = now() + seq * 7 % 11 * interval '1 ms'`); err != nil {
		t.Fatal(err)
	}
	seen := make(map[uuid.UUID]bool)
	for path := "/notifications?limit=3"; path != ""; {
		header := s.do(call{method: "GET", path: path, token: ann}, 200, &page)
		for _, n := range page.Notifications {
			if seen[n.ID] {
				t.Errorf("%s: %s again", path, n.ID)
			}
			seen[n.ID] = true
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), ">")
	}
	if len(seen) != 50 {
		t.Errorf("%d notifications on all pages, want 50", len(seen))
	}
}

// Between a page and the stream that goes on from it, there is neither a gap
// nor an overlap, whichever client of EventSource it is.
func TestListFitsStream(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Official)
	var page notificationapi.NotificationPage
	s.do(call{method: "GET", path: "/notifications", token: ann}, 200, &page)
	s.votes("ann", 2)
	s.report()
	for _, polyfill := range []string{"lastEventId", "lastEventID", "Last-Event-ID", "evs_last_event_id"} {
		old, err := ssetest.Open(t.Context(), s.url+"/notifications/stream?last_event_id=v1.x&evs_preamble=2056&"+polyfill+"="+page.LastEventID, "", "Authorization", "Bearer "+ann)
		if err != nil {
			t.Fatalf("%s: %v", polyfill, err)
		}
		for _, want := range []string{"ready", "notification", "notification", "notification"} {
			if e, err := old.Next(); err != nil || e.Type != want {
				t.Fatalf("%s: event %v (error %v), want %s", polyfill, e, err, want)
			}
		}
		old.Close()
	}
	stream, err := ssetest.Open(t.Context(), s.url+"/notifications/stream?last_event_id="+page.LastEventID, "", "Authorization", "Bearer "+ann)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for i, want := range []string{"ready", "notification", "notification", "notification"} {
		if e, err := stream.Next(); err != nil || e.Type != want {
			t.Fatalf("event %d is %v (error %v), want %s", i, e, err, want)
		}
	}
	s.do(call{method: "GET", path: "/notifications", token: ann}, 200, &page)
	if page.LastEventID != stream.LastID() || len(page.Notifications) != 3 {
		t.Errorf("the list is at %s with %d, the stream at %s", page.LastEventID, len(page.Notifications), stream.LastID())
	}
}

func TestReadMarks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.report() // before the official's time: counts as read
	ann := s.token("ann", auth.Official)
	unread := func(want int64) {
		t.Helper()
		var count notificationapi.UnreadCount
		var page notificationapi.NotificationPage
		s.do(call{method: "GET", path: "/notifications/unread-count", token: ann}, 200, &count)
		s.do(call{method: "GET", path: "/notifications?unread=true&limit=100", token: ann}, 200, &page)
		if count.UnreadCount != want || page.UnreadCount != want || int64(len(page.Notifications)) != want {
			t.Errorf("unread: count %d, page %d, listed %d; want %d", count.UnreadCount, page.UnreadCount, len(page.Notifications), want)
		}
	}
	unread(0)
	s.votes("ann", 3)
	s.report()
	unread(4)
	var page notificationapi.NotificationPage
	s.do(call{method: "GET", path: "/notifications", token: ann}, 200, &page)
	if len(page.Notifications) != 5 {
		t.Fatalf("%d notifications listed, want 5", len(page.Notifications))
	}
	mark := func(i int, read bool) {
		t.Helper()
		var n notificationapi.Notification
		s.do(call{method: "PATCH", path: "/notifications/" + page.Notifications[i].ID.String(), token: ann,
			body: fmt.Sprintf(`{"read":%t}`, read)}, 200, &n)
		if n.Read != read || n.ID != page.Notifications[i].ID {
			t.Errorf("marked %+v, want %s as read: %t", n, page.Notifications[i].ID, read)
		}
	}
	mark(0, true)
	mark(0, true) // twice is once
	unread(3)
	s.votes("ann", 1)
	s.do(call{method: "POST", path: "/notifications/read-all", token: ann, body: `{"last_event_id":"` + page.LastEventID + `"}`}, 200, nil)
	unread(1) // it came after the page
	mark(1, false)
	unread(2)
	s.do(call{method: "POST", path: "/notifications/read-all", token: ann}, 200, nil)
	unread(0)
}

// Nobody reads or marks what is another's.
func TestForeignNotifications(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.votes("ann", 1)
	var page notificationapi.NotificationPage
	s.do(call{method: "GET", path: "/notifications", token: s.token("ann", auth.Resident)}, 200, &page)
	for _, role := range []auth.Role{auth.Resident, auth.Official, auth.Operator} {
		bob := s.token("bob", role)
		s.do(call{method: "PATCH", path: "/notifications/" + page.Notifications[0].ID.String(), token: bob, body: `{"read":true}`}, 404, nil)
		var foreign notificationapi.NotificationPage
		s.do(call{method: "GET", path: "/notifications", token: bob}, 200, &foreign)
		if len(foreign.Notifications) != 0 {
			t.Errorf("a foreign %s reads %+v", role, foreign.Notifications)
		}
		s.do(call{method: "GET", path: "/notifications?cursor=" + page.LastEventID, token: bob}, 400, nil)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Resident)
	cookie := map[string]string{"Cookie": auth.CookieName + "=" + ann}
	with := func(headers map[string]string, name, value string) map[string]string {
		return map[string]string{"Cookie": headers["Cookie"], name: value}
	}
	id := "/notifications/" + uuid.NewString()
	for _, tt := range []struct {
		call
		status int
	}{
		{call{method: "GET", path: "/notifications"}, 401},
		{call{method: "GET", path: "/notifications", token: "nonsense"}, 401},
		{call{method: "GET", path: "/notifications/stream"}, 401},
		{call{method: "GET", path: "/notifications?limit=0", token: ann}, 400},
		{call{method: "GET", path: "/notifications?limit=many", token: ann}, 400},
		{call{method: "GET", path: "/notifications?limit&limit=2", token: ann}, 400},
		{call{method: "GET", path: "/notifications?unread=TRUE", token: ann}, 400},
		{call{method: "GET", path: "/notifications?cursor=&cursor=v1.a.1", token: ann}, 400},
		{call{method: "GET", path: "/notifications?unraed=true", token: ann}, 400},
		{call{method: "GET", path: "/notifications?cursor=v1.x", token: ann}, 400},
		{call{method: "GET", path: "/notifications?cursor=v1.00000000.1", token: ann}, 400},
		{call{method: "PATCH", path: "/notifications/1", token: ann, body: `{"read":true}`}, 400},
		{call{method: "PATCH", path: id, token: ann, body: `{"read":true}`}, 404},
		{call{method: "PATCH", path: id, token: ann, body: `{"read":"yes"}`}, 400},
		{call{method: "PATCH", path: id, token: ann, body: `{"read":true,"more":1}`}, 400},
		{call{method: "PATCH", path: id, token: ann, body: `{`}, 400},
		{call{method: "PATCH", path: id, token: ann, body: `{"read":` + strings.Repeat(" ", 70<<10) + `true}`}, 413},
		{call{method: "POST", path: "/notifications/read-all", token: ann, body: `{"last_event_id":"x"}`}, 400},
		{call{method: "PUT", path: "/notifications", token: ann}, 405},
		{call{method: "POST", path: "/session"}, 401},
		{call{method: "GET", path: "/notifications/stream", headers: with(cookie, "Sec-Fetch-Site", "cross-site")}, 403},
		{call{method: "GET", path: "/notifications/stream", headers: with(cookie, "Origin", "https://evil.example")}, 403},
		{call{method: "GET", path: "/feed/stream", headers: map[string]string{"Origin": "https://evil.example"}}, 403},
		{call{method: "POST", path: "/notifications/read-all", headers: with(cookie, "Origin", "https://evil.example")}, 403},
		{call{method: "POST", path: "/notifications/read-all", headers: cookie}, 200},
	} {
		s.do(tt.call, tt.status, nil)
	}
}

// An official's follows and choices are hers on every device.
func TestFollowsAndScope(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	olga, ann := s.token("olga", auth.Official), s.token("ann", auth.Resident)
	report := uuid.New()
	path := "/me/follows/" + report.String()
	for range 2 {
		s.do(call{method: "PUT", path: path, token: olga}, 204, nil)
	}
	var list notificationapi.Follows
	s.do(call{method: "GET", path: "/me/follows", token: olga}, 200, &list)
	if len(list.Follows) != 1 || list.Follows[0].ReportID != report {
		t.Errorf("she follows %v, want %s", list.Follows, report)
	}
	s.do(call{method: "GET", path: "/me/follows", token: ann}, 200, &list)
	if len(list.Follows) != 0 {
		t.Errorf("ann follows %v, want nothing", list.Follows)
	}
	s.do(call{method: "DELETE", path: path, token: olga}, 204, nil)
	s.do(call{method: "GET", path: "/me/follows", token: olga}, 200, &list)
	if len(list.Follows) != 0 {
		t.Errorf("she still follows %v", list.Follows)
	}
	s.do(call{method: "PUT", path: "/me/follows/pothole", token: olga}, 400, nil)
	s.do(call{method: "PUT", path: path}, 401, nil)

	s.do(call{method: "PUT", path: "/notifications/scope", token: olga, body: `{"only_own":true}`}, 200, nil)
	s.report()
	var page notificationapi.NotificationPage
	s.do(call{method: "GET", path: "/notifications", token: olga}, 200, &page)
	if len(page.Notifications) != 0 || page.UnreadCount != 0 || !page.OnlyOwn {
		t.Errorf("her list is %+v, want nothing, and that she wants only her own", page)
	}
	s.do(call{method: "PUT", path: "/notifications/scope", token: ann, body: `{"only_own":true}`}, 403, nil)
	s.do(call{method: "PUT", path: "/notifications/scope", token: olga, body: `{}`}, 400, nil)
}
