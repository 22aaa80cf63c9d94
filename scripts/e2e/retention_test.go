package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// A stream is shortened while others write to it. Connected readers see nothing of
// it; one that comes back from before the beginning gets a reset, once, and goes on at
// the present; one that comes back from the beginning misses nothing.
func TestRetentionUnderLoad(t *testing.T) {
	t.Parallel()
	const old, young = 12, 4
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	var voters []*client.Client
	for i := range 4 {
		voters = append(voters, c.signIn(fmt.Sprint("Voter ", i), "resident"))
	}
	report := file(t, ana, "Dark crossing")
	stays := watch(t, ana)
	var want []sight
	round := func() { // in which each changes their mind
		way := []string{"upvote", "downvote"}[len(want)/len(voters)%2]
		for _, voter := range voters {
			want = append(want, vote(t, voter, report, way))
		}
		stays.await(len(want))
	}
	for len(want) < old+young {
		round()
	}
	present := must(ana.Notifications(t.Context(), "", 1)).LastEventID
	at := func(seq int) string { // the cursor after so many
		return present[:strings.LastIndexByte(present, '.')+1] + fmt.Sprint(seq)
	}
	// The first ones are of two days ago, by their ids as well.
	execute(t, c.notificationDB, `
		update notifications set created_at = created_at - interval '2 days',
		  id = (lpad(to_hex((extract(epoch from now() - interval '2 days') * 1000)::bigint + seq), 12, '0')
		    || substr(replace(id::text, '-', ''), 13))::uuid
		where seq <= $1 and stream_id = (select id from streams where name = $2)`, old, "user:"+ana.ID)
	c.notification.env = with(c.notification.env, "NOTIFICATIONS_RETENTION", "24h")
	c.notification.kill()
	c.notification.start()
	c.awaitReady()
	c.runSchedule(c.signIn("Pavel", "operator"), "notifications", "retention")
	eventually.True(t, "the old notifications are gone", func() bool {
		round()
		var left int
		err := c.notificationDB.QueryRow(t.Context(), `select count(*) from notifications where created_at < now() - interval '1 day'`).Scan(&left)
		return err == nil && left == 0
	})

	for what, got := range map[string][]sight{"listed": stays.listed(), "shown": stays.all()} {
		expected := want
		if what == "listed" {
			expected = want[old:]
		}
		compare(t, what, got, expected)
	}
	if got, want := stays.ledger.Count(), (ssetest.Count{Received: int64(len(want))}); got != want {
		t.Errorf("the numbers of the stream that stayed: got %+v, want %+v", got, want)
	}
	if got, want := must(ana.Notifications(t.Context(), "", 1)).UnreadCount, int64(len(want)-old); got != want {
		t.Errorf("%d unread, want the %d that are there", got, want)
	}
	for _, tt := range []struct {
		from   int
		types  []string // before notifications
		number int
	}{
		{old - 5, []string{"ready", "reset too_old"}, 0},
		{old - 1, []string{"ready", "reset too_old"}, 0},
		{old, []string{"ready"}, len(want) - old},
		{old + 3, []string{"ready"}, len(want) - old - 3},
	} {
		round()
		types, number := c.resume(ana, at(tt.from), len(want))
		if tt.number > 0 {
			tt.number = len(want) - tt.from
		}
		if fmt.Sprint(types) != fmt.Sprint(tt.types) || number != tt.number {
			t.Errorf("from number %d: %v and %d notifications, want %v and %d", tt.from, types, number, tt.types, tt.number)
		}
	}
}

// all returns what was shown.
func (s *screen) all() []sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sight(nil), s.shown...)
}

// resume opens user's stream at a cursor and returns what comes until the
// stream has reached number last.
func (c *stack) resume(user *client.Client, cursor string, last int) (types []string, notifications int) {
	c.t.Helper()
	ctx, end := context.WithTimeout(c.t.Context(), eventually.Patience)
	defer end()
	eventually.True(c.t, "everything is in the stream", func() bool {
		page, err := user.Notifications(c.t.Context(), "", 1)
		return err == nil && strings.HasSuffix(page.LastEventID, fmt.Sprint(".", last))
	})
	quiet := time.AfterFunc(eventually.Patience, end)
	defer quiet.Stop()
	stream := &client.Stream{Client: user, Path: "/notifications/stream", LastID: cursor, Raw: func(e sse.Event) {
		switch e.Type {
		case sse.Notification:
			notifications++
		case sse.Reset:
			var why struct{ Reason string }
			_ = json.Unmarshal(e.Data, &why) // an empty reason is wrong, too
			types = append(types, "reset "+why.Reason)
		default:
			types = append(types, e.Type)
		}
		if strings.HasSuffix(e.ID, fmt.Sprint(".", last)) {
			end()
		}
	}}
	if err := stream.Run(ctx); err != nil {
		c.t.Errorf("stream: %v", err)
	}
	return types, notifications
}

// runSchedule has an operator run a job now. A run that is under way is waited for.
func (c *stack) runSchedule(operator *client.Client, database, job string) {
	c.t.Helper()
	path, body := "/admin/"+database+"/schedules/"+job+"/run", map[string]string{"reason": "a test"}
	eventually.True(c.t, job+" runs", func() bool {
		return operator.Do(c.t.Context(), http.MethodPost, path, body, nil) == nil
	})
}
