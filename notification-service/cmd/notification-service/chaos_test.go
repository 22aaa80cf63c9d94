package main

import (
	"context"
	"encoding/json"
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
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
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
	on := newCluster(t, broker.URL(), db.Create(migrations.Notification), "STREAM_COMPARE_EVERY=1s", "DRAIN_WINDOW=500ms")
	c := newChaos(t, on, plan)

	ctx, calm := context.WithTimeout(t.Context(), plan.length)
	defer calm()
	var makers sync.WaitGroup
	for range publishers {
		makers.Go(func() { c.publish(ctx) })
	}
	makers.Go(func() { c.killReplicas(ctx) })
	makers.Go(func() { c.loseAnnouncements(ctx, broker.ManagementURL()) })
	makers.Go(func() {
		_ = backoff.Sleep(ctx, plan.length/3)
		broker.Stop()
		broker.Start()
		_ = backoff.Sleep(ctx, plan.length/4)
		db.Stop()
		db.Start()
	})
	makers.Wait()
	c.settle()
	c.report()
}

// A chaos is three replicas with clients of several users.
type chaos struct {
	t        *testing.T
	cluster  *cluster
	plan     chaosPlan
	replicas []*replica
	proxies  []*faultyProxy
	clients  []*listener
	expected []atomic.Int64 // notifications by user

	kills, lost, connects atomic.Int64
}

// A listener is a client that comes back whenever it is cut off.
type listener struct {
	user   int
	ledger ssetest.Ledger
}

func newChaos(t *testing.T, on *cluster, plan chaosPlan) *chaos {
	t.Helper()
	c := &chaos{t: t, cluster: on, plan: plan, expected: make([]atomic.Int64, plan.users)}
	for range 3 {
		r := on.start()
		c.replicas = append(c.replicas, r)
		c.proxies = append(c.proxies, newFaultyProxy(t, r.Addr(), bytesUntilCut))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var listening sync.WaitGroup
	t.Cleanup(func() { cancel(); listening.Wait() })
	for user := range plan.users {
		token := c.replicas[0].token(userName(user), "resident")
		for range plan.clients {
			l := &listener{user: user}
			c.clients = append(c.clients, l)
			first := make(chan struct{})
			listening.Go(func() { c.listen(ctx, l, token, sync.OnceFunc(func() { close(first) })) })
			<-first
		}
	}
	return c
}

func userName(user int) string { return fmt.Sprintf("user%d", user) }

// listen follows the stream until ctx ends, on whichever replica there is.
func (c *chaos) listen(ctx context.Context, l *listener, token string, ready func()) {
	lastID := ""
	for ctx.Err() == nil {
		addr := c.proxies[rand.IntN(len(c.proxies))].addr
		s, err := ssetest.Open(ctx, "http://"+addr+"/notifications/stream", lastID, "Authorization", "Bearer "+token)
		if err != nil {
			_ = backoff.Sleep(ctx, 20*time.Millisecond)
			continue
		}
		c.connects.Add(1)
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
		_ = backoff.Sleep(ctx, rand.N(20*time.Millisecond)) // far less than the server asked for
	}
}

// publish sends notifications until ctx ends. One whose confirmation is lost
// is sent again under the same id, as the relay does.
func (c *chaos) publish(ctx context.Context) {
	p := c.cluster.publisher()
	tick := time.NewTicker(publishers * time.Second / time.Duration(c.plan.rate))
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		user := rand.IntN(c.plan.users)
		v := p.newVote(userName(user))
		c.expected[user].Add(1)
		for p.send(context.WithoutCancel(ctx), v) != nil {
			p = c.cluster.publisher() // waits until the broker is back
		}
	}
}

// killReplicas ends one after the other, mostly without warning.
func (c *chaos) killReplicas(ctx context.Context) {
	for i := 0; backoff.Sleep(ctx, 300*time.Millisecond) == nil; i++ {
		r := c.replicas[rand.IntN(len(c.replicas))]
		if i%4 == 3 {
			r.Stop()
		} else {
			r.Kill()
		}
		c.kills.Add(1)
		r.Start()
	}
}

// loseAnnouncements cuts the connections that carry announcements, one at a time.
// Announcements are lost until they are back.
func (c *chaos) loseAnnouncements(ctx context.Context, management string) {
	for backoff.Sleep(ctx, 200*time.Millisecond) == nil {
		for _, name := range announcementConnections(ctx, management) {
			if rand.IntN(3) == 0 && deleteConnection(ctx, management, name) {
				c.lost.Add(1)
			}
		}
	}
}

// settle waits until every client has what its user was sent.
func (c *chaos) settle() {
	for _, proxy := range c.proxies {
		proxy.calm.Store(true)
	}
	eventually.True(c.t, "every client has everything", func() bool {
		for _, l := range c.clients {
			if l.ledger.Last() < c.expected[l.user].Load() {
				return false
			}
		}
		return true
	})
}

// report holds what was received against what was sent.
func (c *chaos) report() {
	var sum ssetest.Count
	var expected int64
	for _, l := range c.clients {
		got, want := l.ledger.Count(), ssetest.Count{Received: c.expected[l.user].Load()}
		if got != want || l.ledger.Last() != want.Received {
			c.t.Errorf("%s: got %+v and the last number %d, want each of %d notifications once", userName(l.user), got, l.ledger.Last(), want.Received)
		}
		expected += want.Received
		sum.Received += got.Received
		sum.Missing += got.Missing
		sum.Doubled += got.Doubled
		sum.Resets += got.Resets
	}
	var cuts int64
	for _, proxy := range c.proxies {
		cuts += proxy.cuts.Load()
	}
	c.t.Logf("expected=%d received=%d missing=%d doubled=%d resets=%d connects=%d cuts=%d replicas_killed=%d announcement_connections_cut=%d",
		expected, sum.Received, sum.Missing, sum.Doubled, sum.Resets, c.connects.Load(), cuts, c.kills.Load(), c.lost.Load())
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

// askManagement makes a request to the broker's management API.
func askManagement(ctx context.Context, method, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
