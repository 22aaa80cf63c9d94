package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// Nobody learns whether the author of an anonymous report is listening. From
// that, and from whether Ann and Ben are, one could tell which of them it is:
// Carl votes on a report of each and on the anonymous one, in moments in which
// they have more and fewer tabs open, and looks at every number that the gateway
// serves. A number that moves on the anonymous report as it does on that of its
// author, and not as on the other's, gives the author away.
func TestPresenceIsNotRevealed(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprintf("replicas=%d", replicas), func(t *testing.T) {
			t.Parallel()
			a := newAttack(t, replicas)
			a.lookAround()
			for range 2 {
				a.play(a.ann)
				a.play(a.ben)
			}
			if found := a.outside.telling(a.moments); len(found) > 0 {
				t.Errorf("the anonymous reporter is given away through the gateway by %q", found)
			}
			if found := a.inside.telling(a.moments); len(found) > 0 {
				t.Errorf("the anonymous reporter is given away by the metrics %q", found)
			}
			// Somebody who counted what readers' own streams show could tell, or the
			// attack is none.
			if found := a.shown.telling(a.moments); len(found) == 0 {
				t.Error("the attack fails with a count of each event on each stream, too: it proves nothing")
			}
		})
	}
}

// An attack is Carl, what Carl plays with, and what Carl has seen.
type attack struct {
	*stack
	carl, ann, ben   *client.Client // through the gateway
	reports, streams []*process     // the replicas of both services
	gateway          string
	paths            []string // all that the gateway serves, as far as Carl can guess

	moments         int
	outside, inside scores // of what the gateway serves, and of the metrics
	shown           scores // of what a counter of the events on readers' own streams would say
}

// scores has for each number how often it moved on the anonymous report as on
// the report of its author, and as on that of the other.
type scores map[string]*struct{ author, other int }

func newAttack(t *testing.T, replicas int) *attack {
	t.Helper()
	a := &attack{stack: startStack(t), outside: scores{}, inside: scores{}, shown: scores{}}
	a.reports, a.streams = []*process{a.report}, []*process{a.notification}
	for len(a.reports) < replicas {
		a.reports = append(a.reports, newProcess(t, "report-service", a.report.env))
		a.streams = append(a.streams, newProcess(t, "notification-service", a.notification.env))
	}
	for _, p := range slices.Concat(a.reports[1:], a.streams[1:]) {
		p.start()
	}
	a.gateway = gatewaytest.Start(t, addresses(a.reports), addresses(a.streams)).URL
	entrance := client.New(a.gateway)
	t.Cleanup(entrance.CloseIdle)
	for _, person := range []struct {
		name string
		user **client.Client
	}{{"Carl", &a.carl}, {"Ann", &a.ann}, {"Ben", &a.ben}} {
		*person.user = must(entrance.SignIn(t.Context(), person.name, "resident", ""))
	}
	return a
}

func addresses(replicas []*process) (addrs []string) {
	for _, p := range replicas {
		addrs = append(addrs, strings.TrimPrefix(p.url(), "http://"))
	}
	return addrs
}

// lookAround collects the paths, and makes sure that none of those at which
// programs tell about themselves is among what is served, by the gateway or at
// the services' public addresses.
func (a *attack) lookAround() {
	own := []string{"/health/detailed", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=1"}
	for _, path := range append(own, selfDescriptions...) {
		if path == "/" {
			continue // the page
		}
		for _, url := range []string{
			a.gateway + path, a.gateway + "/report-service" + path, a.report.url() + path, a.notification.url() + path,
		} {
			if status, _ := a.get(url); status != http.StatusNotFound {
				a.t.Errorf("GET %s: got %d, want 404", url, status)
			}
		}
		a.paths = append(a.paths, path, "/report-service"+path)
	}
}

// play lets author file anonymously and Carl vote, and counts what moved how.
func (a *attack) play(author *client.Client) {
	in := draft("By whom?")
	in.PrivacyLevel = "anonymous"
	secret, err := author.CreateReport(a.t.Context(), in)
	if err != nil {
		a.t.Fatalf("file anonymously: %v", err)
	}
	open := []client.Report{file(a.t, a.ann, "By Ann"), file(a.t, a.ben, "By Ben")}
	other := open[1]
	if author == a.ben {
		slices.Reverse(open)
		other = open[1]
	}
	values := map[string][]string{"id": {secret.ID.String(), open[0].ID.String(), other.ID.String()}}
	paths := slices.Clone(a.paths)
	for _, p := range []*process{a.report, a.notification} {
		for _, op := range a.describe(p).operations(values) {
			if op.method == http.MethodGet && !strings.Contains(op.path, "/stream") {
				paths = append(paths, op.path)
			}
		}
	}

	votes := []string{"upvote", "downvote"}
	for i, tabs := range [][2]int{{0, 1}, {2, 0}, {1, 2}} {
		a.openTabs(tabs[0], a.ann, tabs[1], a.ben, func(listening map[*client.Client][]*follower) {
			before := [3]numbers{a.read(paths), a.readInside(), {"events": 0}}
			var moved [3][3]numbers // by report, how the numbers outside, inside and shown moved
			acts := []struct {
				report    client.Report
				recipient *client.Client
			}{{secret, author}, {open[0], author}, {other, a.otherThan(author)}}
			order := []int{0, 1, 2}
			if a.moments%2 == 1 { // a list in the order of changes shows in which order Carl voted
				order = []int{0, 2, 1}
			}
			for _, n := range order {
				vote(a.t, a.carl, acts[n].report, votes[i%2])
				to := listening[acts[n].recipient]
				a.awaitDelivery(to)
				after := [3]numbers{a.read(paths), a.readInside(), {"events": before[2]["events"] + float64(len(to))}}
				for where := range after {
					moved[n][where] = after[where].minus(before[where])
				}
				before = after
			}
			for where, s := range []scores{a.outside, a.inside, a.shown} {
				s.add(moved[0][where], moved[1][where], moved[2][where])
			}
			a.moments++
		})
	}
}

func (a *attack) otherThan(user *client.Client) *client.Client {
	if user == a.ann {
		return a.ben
	}
	return a.ann
}

// A follower is a page that follows its user's stream.
type follower struct {
	ready chan struct{}
	seen  chan struct{} // a token for each notification
}

// openTabs calls while with so many open tabs of Ann and Ben.
func (a *attack) openTabs(anns int, ann *client.Client, bens int, ben *client.Client, while func(map[*client.Client][]*follower)) {
	ctx, closeAll := context.WithCancel(a.t.Context())
	listening, ended := make(map[*client.Client][]*follower), make(chan error)
	for i := range anns + bens {
		user := ann
		if i >= anns {
			user = ben
		}
		one := &follower{ready: make(chan struct{}), seen: make(chan struct{}, 100)}
		var connected atomic.Bool
		stream := &client.Stream{Client: user, Path: "/notifications/stream", Raw: func(e sse.Event) {
			switch {
			case e.Type == sse.Notification:
				one.seen <- struct{}{}
			case !connected.Swap(true):
				close(one.ready)
			}
		}}
		go func() { ended <- stream.Run(ctx) }()
		listening[user] = append(listening[user], one)
		a.await(one.ready, "a tab is open")
	}
	while(listening)
	closeAll()
	for range anns + bens {
		<-ended
	}
	eventually.True(a.t, "all tabs are closed", func() bool {
		return a.readInside()[`sse_connections{stream="notifications"}`] == 0
	})
}

// awaitDelivery returns when the vote has arrived in the tabs, and in the
// database in any case.
func (a *attack) awaitDelivery(tabs []*follower) {
	a.t.Helper()
	for _, one := range tabs {
		a.await(one.seen, "the vote is shown")
	}
	eventually.True(a.t, "the vote is in the database", func() bool {
		var written int
		err := a.notificationDB.QueryRow(a.t.Context(), `select count(*) from notifications where type = $1`, voted).Scan(&written)
		return err == nil && written == a.votes()
	})
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // Carl cannot know when, and so waits a little
}

// votes returns how many votes and changes of votes there were.
func (a *attack) votes() (n int) {
	row := a.reportDB.QueryRow(a.t.Context(), `select count(*) from outbox_messages where routing_key = $1`, voted)
	if err := row.Scan(&n); err != nil {
		a.t.Fatalf("count votes: %v", err)
	}
	return n
}

func (a *attack) await(signal <-chan struct{}, what string) {
	a.t.Helper()
	select {
	case <-signal:
	case <-time.After(eventually.Patience):
		a.t.Fatalf("not in time: %s", what)
	}
}

// numbers has every number that was read, by where it is.
type numbers map[string]float64

// read returns the numbers at the paths of the gateway, for Carl. Those that
// each replica counts for itself are added up, as far as it says which it is.
func (a *attack) read(paths []string) numbers {
	all := make(numbers)
	for _, path := range paths {
		seen := make(map[float64]bool)
		for range 10 * len(a.streams) {
			status, body := a.get(a.gateway + path)
			found := numbers{"status": float64(status), "length": float64(len(body))}
			found.parse(body)
			replica := found["process_start_time_seconds"]
			if !seen[replica] {
				all.addAll(path, found)
			}
			if seen[replica] = true; replica == 0 || len(seen) == len(a.streams) {
				break
			}
		}
	}
	return all
}

// readInside returns the sums of all metrics of notification-service.
func (a *attack) readInside() numbers {
	all := make(numbers)
	for _, p := range a.streams {
		status, body := a.get(p.operations() + "/metrics")
		if status != http.StatusOK {
			a.t.Fatalf("read metrics: %d", status)
		}
		found := make(numbers)
		found.parse(body)
		all.addAll("", found)
	}
	return all
}

func (a *attack) get(url string) (status int, body []byte) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		a.t.Fatalf("GET %s: %v", url, err)
	}
	req.Header.Set("Authorization", "Bearer "+a.carl.Token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatalf("GET %s: %v", url, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatalf("GET %s: %v", url, err)
	}
	return res.StatusCode, body
}

func (n numbers) addAll(prefix string, more numbers) {
	for name, value := range more {
		n[prefix+name] += value
	}
}

// parse adds the numbers of a JSON body, or of lines that end in one, as those
// of Prometheus do.
func (n numbers) parse(body []byte) {
	var value any
	if json.Unmarshal(body, &value) == nil {
		n.walk("", value)
		return
	}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if number, err := strconv.ParseFloat(line[at+1:], 64); err == nil && at > 0 {
			n[line[:at]] = number
		}
	}
}

func (n numbers) walk(at string, value any) {
	switch v := value.(type) {
	case float64:
		n[at] = v
	case []any:
		n[at+" length"] = float64(len(v))
		for i, item := range v {
			n.walk(fmt.Sprint(at, "/", i), item)
		}
	case map[string]any:
		for name, item := range v {
			n.walk(at+"/"+name, item)
		}
	}
}

// minus returns by how much the numbers are above those before.
func (n numbers) minus(before numbers) numbers {
	moved := make(numbers, len(n))
	for name, value := range n {
		moved[name] = value - before[name]
	}
	return moved
}

// add counts which numbers moved on the anonymous report as on the author's, and as on
// the other's.
func (s scores) add(anonymous, author, other numbers) {
	for name := range other {
		if s[name] == nil {
			s[name] = &struct{ author, other int }{}
		}
		if anonymous[name] == author[name] {
			s[name].author++
		}
		if anonymous[name] == other[name] {
			s[name].other++
		}
	}
}

// telling returns the numbers that give the author away: nearly always as on
// their report, and hardly ever as on the other's. One that moves at random, as
// the length of an answer with times in it, does not get there by chance.
func (s scores) telling(moments int) (names []string) {
	for name, score := range s {
		if score.author*6 >= moments*5 && score.other*6 <= moments {
			names = append(names, fmt.Sprintf("%s (%d and %d of %d)", name, score.author, score.other, moments))
		}
	}
	slices.Sort(names)
	return names
}
