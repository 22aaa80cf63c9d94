package broadcast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/broadcast"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A hub records what it is given.
type hub struct {
	batches  chan notification.Batch
	compares chan struct{}
	progress chan string // whom, and how far which photo is
}

func newHub() *hub {
	return &hub{make(chan notification.Batch, 1000), make(chan struct{}, 1000), make(chan string, 1000)}
}

func (h *hub) Deliver(b notification.Batch, _ time.Time) {
	if len(b.Notifications)+len(b.Feed) == 0 {
		return
	}
	select {
	case h.batches <- b:
	default: // the test has seen enough
	}
}

func (h *hub) Compare() { h.compares <- struct{}{} }

func (h *hub) Progress(to notification.Stream, p notification.Progress) {
	h.progress <- fmt.Sprint(to, p.PhotoID, p.Stage)
}

// next returns what arrives next.
func next[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(eventually.Patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// start runs a bus for the test's time.
func start(t *testing.T, url string, keys *event.Keyring) (*broadcast.Bus, *hub) {
	t.Helper()
	h := newHub()
	b := broadcast.New(broadcast.Config{Hub: h, Keyring: keys, Metrics: prometheus.NewRegistry(),
		Rabbit: rabbit.Config{URL: url, Log: zerolog.Nop()}})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Run(ctx); err != nil {
			t.Errorf("bus: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	next(t, "the subscription", h.compares)
	return b, h
}

func newKeys(t *testing.T) *event.Keyring {
	t.Helper()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func batchFor(user string, seq int64) notification.Batch {
	return notification.Batch{
		Notifications: []notification.Notification{{
			Stream: notification.UserStream(user), Epoch: "epoch42", Seq: seq, ID: uuid.New(),
			Data: json.RawMessage(`{"type":"report.created"}`), CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
		}},
		Feed: []notification.Data{{ReportTitle: "Pothole"}},
	}
}

// A replica has its own announcement at once, and the other soon; each once.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	url, keys := rabbittest.Vhost(t), newKeys(t)
	a, hubA := start(t, url, keys)
	_, hubB := start(t, url, keys)
	for seq := range int64(50) {
		want := batchFor("ann", seq+1)
		a.Announce(want)
		for name, h := range map[string]*hub{"own": hubA, "other": hubB} {
			got := next(t, "a batch", h.batches)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the %s hub got %v, want %v", name, got, want)
			}
		}
	}
	if len(hubA.batches) > 0 {
		t.Error("a replica received its own announcement")
	}
}

// The queues show neither whom a notification is for, nor which of them belong
// together.
func TestQueuesHideRecipients(t *testing.T) {
	t.Parallel()
	url, keys := rabbittest.Vhost(t), newKeys(t)
	b, _ := start(t, url, keys)
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(q.Name, "", event.Topology{}.LiveExchange(), false, nil); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	// None of them is short enough to stand in random base64 by chance.
	b.Announce(batchFor("canary-of-ann", 471147114711))
	d := next(t, "the announcement", deliveries)
	for bytes.Contains(d.Body, []byte(`"compare"`)) {
		d = next(t, "the announcement", deliveries)
	}
	for _, secret := range []string{"canary", "of-ann", "epoch42", "471147114711", "user:"} {
		if strings.Contains(fmt.Sprintf("%s %v %s", d.Body, d.Headers, d.RoutingKey), secret) {
			t.Errorf("the message shows %q: %s", secret, d.Body)
		}
	}
}

// After either connection was lost, every replica compares, and receives later
// announcements. Those in between may be lost: the comparison makes up for it.
func TestCompareAfterConnectionLost(t *testing.T) {
	t.Parallel()
	broker, keys := rabbittest.StartServer(t), newKeys(t)
	a, hubA := start(t, broker.URL(), keys)
	_, hubB := start(t, broker.URL(), keys)
	broker.Stop()
	for range 2000 { // more than are kept; it must not block
		a.Announce(batchFor("ann", 1))
		<-hubA.batches
	}
	for _, h := range []*hub{hubA, hubB} {
		for len(h.compares) > 0 {
			<-h.compares
		}
	}
	broker.Start()
	for _, h := range []*hub{hubA, hubB} {
		next(t, "a comparison", h.compares)
	}
	for deadline := time.Now().Add(eventually.Patience); len(hubB.batches) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("after the outage nothing announced arrives")
		}
		a.Announce(batchFor("ann", 2))
		<-hubA.batches
		<-time.After(10 * time.Millisecond)
	}
}

// An announcement that cannot be read makes the replica compare.
func TestUnreadableAnnouncement(t *testing.T) {
	t.Parallel()
	url := rabbittest.Vhost(t)
	_, h := start(t, url, newKeys(t))
	other, _ := start(t, url, newKeys(t)) // with another key
	for len(h.compares) > 0 {
		<-h.compares
	}
	other.Announce(batchFor("ann", 1))
	next(t, "a comparison", h.compares)
	if len(h.batches) > 0 {
		t.Error("a batch was delivered that cannot be read")
	}
}

// A photo's progress, as the photo worker announces it, reaches every replica, for
// its uploader. A message sealed for another photo, or without progress, reaches nobody.
func TestProgress(t *testing.T) {
	t.Parallel()
	url, keys := rabbittest.Vhost(t), newKeys(t)
	_, hubA := start(t, url, keys)
	_, hubB := start(t, url, keys)
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	photo := uuid.New()
	send := func(p any) {
		body, err := json.Marshal(p)
		if err == nil {
			err = ch.PublishWithContext(t.Context(), event.Topology{}.ProgressExchange(), "", false, false, amqp.Publishing{Body: body})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	send("no progress")
	send(event.PhotoProgress{To: keys.Seal(uuid.New(), "ann"), ReportID: uuid.New(), PhotoID: photo, Stage: event.PhotoChecking})
	send(event.PhotoProgress{To: keys.Seal(photo, "ann"), ReportID: uuid.New(), PhotoID: photo, Stage: event.PhotoResizing})
	for _, h := range []*hub{hubA, hubB} {
		got := next(t, "the progress", h.progress)
		if want := fmt.Sprint(notification.UserStream("ann"), photo, event.PhotoResizing); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
