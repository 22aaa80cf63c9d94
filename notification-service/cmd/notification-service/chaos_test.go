package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
	"github.com/cityconnect/cityconnect/platform/ssetest"
)

// chaosPlan says how much happens. `make chaos-stream` sets the variables for
// a long run.
type chaosPlan struct {
	length  time.Duration
	rate    int // notifications a second
	users   int
	clients int // of each user
}

// publishers share the rate, since each waits for its confirmations.
const publishers = 8

// bytesUntilCut is what a connection carries at most: some events.
const bytesUntilCut = 4000

func planFromEnv() chaosPlan {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	return chaosPlan{
		length:  time.Duration(number("CHAOS_SECONDS", 12)) * time.Second,
		rate:    number("CHAOS_RATE", 200),
		users:   number("CHAOS_USERS", 12),
		clients: number("CHAOS_CLIENTS", 2),
	}
}

// Three replicas are killed and restarted, the broker and the database are
// restarted, connections are cut anywhere, announcements are lost; and each
// client gets each of its notifications once, in order.
func TestStreamChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	plan := planFromEnv()
	db, broker := pgtest.StartServer(t), rabbittest.StartServer(t)
	c := newCity(t, broker.URL(), db.Create(migrations.Notification), "STREAM_COMPARE_EVERY=1s", "DRAIN_WINDOW=500ms")
	w := newWorld(t, c, plan)

	ctx, calm := context.WithTimeout(t.Context(), plan.length)
	defer calm()
	var makers sync.WaitGroup
	for range publishers {
		makers.Go(func() { w.publish(ctx) })
	}
	makers.Go(func() { w.killReplicas(ctx) })
	makers.Go(func() { w.loseAnnouncements(ctx, broker.ManagementURL()) })
	makers.Go(func() {
		sleep(ctx, plan.length/3)
		broker.Stop()
		broker.Start()
		sleep(ctx, plan.length/4)
		db.Stop()
		db.Start()
	})
	makers.Wait()
	w.settle()
	w.report()
}

// A world is three replicas with clients of several users.
type world struct {
	t        *testing.T
	city     *city
	plan     chaosPlan
	replicas []*replica
	cutters  []*cutter
	clients  []*listener
	expected []atomic.Int64 // notifications by user

	kills, lost, connects atomic.Int64
}

// A listener is a client that comes back whenever it is cut off.
type listener struct {
	user   int
	ledger ssetest.Ledger
}

func newWorld(t *testing.T, c *city, plan chaosPlan) *world {
	t.Helper()
	w := &world{t: t, city: c, plan: plan, expected: make([]atomic.Int64, plan.users)}
	for range 3 {
		r := c.start()
		w.replicas = append(w.replicas, r)
		w.cutters = append(w.cutters, newCutter(t, fmt.Sprintf("127.0.0.1:%d", r.port), bytesUntilCut))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var listening sync.WaitGroup
	t.Cleanup(func() { cancel(); listening.Wait() })
	for user := range plan.users {
		token := w.replicas[0].token(userName(user), "resident")
		for range plan.clients {
			l := &listener{user: user}
			w.clients = append(w.clients, l)
			first := make(chan struct{})
			listening.Go(func() { w.listen(ctx, l, token, sync.OnceFunc(func() { close(first) })) })
			<-first
		}
	}
	return w
}

func userName(user int) string { return fmt.Sprintf("user%d", user) }

// listen follows the stream until ctx ends, on whichever replica there is.
func (w *world) listen(ctx context.Context, l *listener, token string, ready func()) {
	lastID := ""
	for ctx.Err() == nil {
		addr := w.cutters[rand.IntN(len(w.cutters))].addr
		s, err := ssetest.Open(ctx, "http://"+addr+"/notifications/stream", lastID, "Authorization", "Bearer "+token)
		if err != nil {
			sleep(ctx, 20*time.Millisecond)
			continue
		}
		w.connects.Add(1)
		for {
			e, err := s.Next()
			if err != nil {
				break
			}
			lastID = e.ID
			l.ledger.Observe(e)
			ready()
		}
		s.Close()
		sleep(ctx, rand.N(20*time.Millisecond)) // far less than it was told to
	}
}

// publish sends notifications until ctx ends. One whose confirmation is lost
// is sent again under the same id, as the relay does.
func (w *world) publish(ctx context.Context) {
	p := w.city.publisher()
	tick := time.NewTicker(publishers * time.Second / time.Duration(w.plan.rate))
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		user := rand.IntN(w.plan.users)
		v := p.newVote(userName(user))
		w.expected[user].Add(1)
		for p.send(context.WithoutCancel(ctx), v) != nil {
			p = w.city.publisher() // waits until the broker is back
		}
	}
}

// killReplicas ends one after the other, mostly without warning.
func (w *world) killReplicas(ctx context.Context) {
	for i := 0; sleep(ctx, 300*time.Millisecond); i++ {
		r := w.replicas[rand.IntN(len(w.replicas))]
		if i%4 == 3 {
			r.stop()
		} else {
			r.kill()
		}
		w.kills.Add(1)
		r.start()
	}
}

// loseAnnouncements cuts the connections that carry announcements, one at a time.
// What is announced until they are back is lost.
func (w *world) loseAnnouncements(ctx context.Context, management string) {
	for sleep(ctx, 200*time.Millisecond) {
		for _, name := range announcementConnections(ctx, management) {
			if rand.IntN(3) == 0 && deleteConnection(ctx, management, name) {
				w.lost.Add(1)
			}
		}
	}
}

// settle waits until every client has what its user was sent.
func (w *world) settle() {
	for _, c := range w.cutters {
		c.calm.Store(true)
	}
	eventually(w.t, "every client has everything", func() bool {
		for _, l := range w.clients {
			if l.ledger.Last() < w.expected[l.user].Load() {
				return false
			}
		}
		return true
	})
}

// report holds what was received against what was sent.
func (w *world) report() {
	var sum ssetest.Count
	var expected int64
	for _, l := range w.clients {
		got, want := l.ledger.Count(), ssetest.Count{Received: w.expected[l.user].Load()}
		if got != want || l.ledger.Last() != want.Received {
			w.t.Errorf("%s: got %+v and the last number %d, want each of %d notifications once", userName(l.user), got, l.ledger.Last(), want.Received)
		}
		expected += want.Received
		sum.Received += got.Received
		sum.Missing += got.Missing
		sum.Doubled += got.Doubled
		sum.Resets += got.Resets
	}
	var cuts int64
	for _, c := range w.cutters {
		cuts += c.cuts.Load()
	}
	w.t.Logf("expected=%d received=%d missing=%d doubled=%d resets=%d connects=%d cuts=%d replicas_killed=%d announcement_connections_cut=%d",
		expected, sum.Received, sum.Missing, sum.Doubled, sum.Resets, w.connects.Load(), cuts, w.kills.Load(), w.lost.Load())
}

// sleep waits for d and reports whether ctx still goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// announcementConnections returns the names of the connections that carry
// announcements. While the broker is away there are none.
func announcementConnections(ctx context.Context, management string) []string {
	var list []struct {
		Name       string `json:"name"`
		Properties struct {
			Name string `json:"connection_name"`
		} `json:"client_properties"`
	}
	if askManagement(ctx, http.MethodGet, management+"/api/connections", &list) != nil {
		return nil
	}
	var names []string
	for _, c := range list {
		if strings.HasPrefix(c.Properties.Name, "broadcast-") {
			names = append(names, c.Name)
		}
	}
	return names
}

func deleteConnection(ctx context.Context, management, name string) bool {
	return askManagement(ctx, http.MethodDelete, management+"/api/connections/"+url.PathEscape(name), nil) == nil
}
