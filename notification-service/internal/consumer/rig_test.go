package consumer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/courier"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
)

// patience is how long a test waits for what must come. It is never a
// measure of speed.
const patience = 1 * time.Minute

// A rig is a database and a broker, and whatever a test starts on them.
type rig struct {
	t        *testing.T
	url      string // of the broker
	pool     *pgxpool.Pool
	store    *postgres.Store
	topology event.Topology
	keyring  *event.Keyring
	out      *amqp.Channel // to publish on
	metrics  []prometheus.Gatherer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return rigOn(t, rabbittest.Vhost(t), pgtest.Notification(t))
}

func rigOn(t *testing.T, url string, pool *pgxpool.Pool) *rig {
	t.Helper()
	keyring, err := event.ParseKeyring(testKey)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, url: url, pool: pool, store: postgres.NewStore(pool), keyring: keyring}
}

// testKey is fixed, so that a subprocess can open what the test sealed.
const testKey = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// An option changes what a consumer is made of.
type option func(*consumer.Config)

// tuning is the default one.
func tuning() consumer.Tuning {
	return consumer.Tuning{
		Prefetch: 10, Workers: 1, BatchSize: 10, ApplyTimeout: 10 * time.Second, StallAfter: 15 * time.Second,
		MaxAttempts: 3, Backoff: consumer.Exponential,
		Delays: []time.Duration{time.Second, 5 * time.Second, 30 * time.Second},
	}
}

func withStore(s consumer.Store) option { return func(c *consumer.Config) { c.Store = s } }

func withTuning(change func(*consumer.Tuning)) option {
	return func(c *consumer.Config) { change(&c.Tuning) }
}

// start runs a consumer with its courier, and returns what stops it and waits
// for its end. It is stopped at the test's end at the latest.
func (r *rig) start(options ...option) (c *consumer.Consumer, stop func()) {
	r.t.Helper()
	log := zerolog.Nop()
	if os.Getenv("TEST_LOG") != "" {
		log = zerolog.New(zerolog.NewTestWriter(r.t))
	}
	reg := prometheus.NewRegistry()
	r.metrics = append(r.metrics, reg)
	c, run, err := assemble(r.url, r.store, r.keyring, log, reg, options...)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			r.t.Errorf("consumer: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	r.t.Cleanup(stop)
	return c, stop
}

// assemble wires a consumer as the service does.
func assemble(url string, store *postgres.Store, keyring *event.Keyring, log zerolog.Logger, reg *prometheus.Registry, options ...option) (*consumer.Consumer, func(context.Context) error, error) {
	post := courier.New(rabbit.Config{URL: url, Name: "test courier", Log: log}, reg, func(string, string) {})
	cfg := consumer.Config{
		Store: store, Pools: store, Announcer: deaf{}, Courier: post, Keyring: keyring, Tuning: tuning(),
		Rabbit: rabbit.Config{URL: url, Name: "test consumer", Log: log}, Log: log, Metrics: reg,
	}
	for _, o := range options {
		o(&cfg)
	}
	c, err := consumer.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context) error {
		posting, endPost := context.WithCancel(context.WithoutCancel(ctx))
		var posts sync.WaitGroup
		posts.Go(func() { _ = post.Run(posting) })
		defer posts.Wait()
		defer endPost() // after the consumer, which still moves what it has in hand
		return c.Run(ctx)
	}
	return c, run, nil
}

type deaf struct{}

func (deaf) Announce(context.Context, notification.Batch) {}

// A message is one to publish.
type message struct {
	id      string
	key     event.Key
	body    []byte
	headers amqp.Table
}

// vote returns a valid message for user's stream.
func (r *rig) vote(user string) message {
	report := uuid.New()
	body, _ := json.Marshal(&event.VoteReceived{
		ReportID: report, ReportVersion: 2, ReportTitle: "Pothole", VoterID: "voter", VoteType: event.Upvote,
		NewScore: new(int64(1)), Timestamp: time.Now().Unix(),
	})
	return message{
		id: uuid.NewString(), key: event.VoteReceivedKey, body: body,
		headers: amqp.Table{event.RecipientHeader: r.keyring.Seal(report, user)},
	}
}

func (r *rig) votes(n int, user string) []message {
	list := make([]message, n)
	for i := range list {
		list[i] = r.vote(user)
	}
	return list
}

// publish sends the messages and waits for their confirms.
func (r *rig) publish(messages ...message) {
	r.t.Helper()
	if r.out == nil || r.out.IsClosed() {
		r.out = r.channel()
		if err := r.out.Confirm(false); err != nil {
			r.t.Fatal(err)
		}
	}
	var confirms []*amqp.DeferredConfirmation
	for _, m := range messages {
		c, err := r.out.PublishWithDeferredConfirm(r.topology.Exchange(), string(m.key), true, false, amqp.Publishing{
			MessageId: m.id, Type: string(m.key), Body: m.body, Headers: m.headers,
			DeliveryMode: amqp.Persistent, Timestamp: time.Now(), ContentType: "application/json",
		})
		if err != nil {
			r.t.Fatal(err)
		}
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		if !c.Wait() {
			r.t.Fatal("the broker refused a message of the test")
		}
	}
}

// channel returns a channel on a connection of its own.
func (r *rig) channel() *amqp.Channel {
	r.t.Helper()
	conn, err := amqp.Dial(r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		r.t.Fatal(err)
	}
	return ch
}

// eventually waits until check returns nothing more to wish for.
func eventually(t *testing.T, what string, check func() (missing string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		missing := check()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, missing)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *rig) count(sql string, args ...any) int {
	r.t.Helper()
	var n int
	if err := r.pool.QueryRow(context.WithoutCancel(r.t.Context()), sql, args...).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// waitEffects waits until n messages have had their effect.
func (r *rig) waitEffects(n int) {
	r.t.Helper()
	eventually(r.t, "effects", func() string {
		if got := r.count(`select count(*) from processed_messages`); got != n {
			return fmt.Sprintf("%d messages have had their effect, want %d", got, n)
		}
		return ""
	})
}

// inspect returns what the broker says about queue.
func (r *rig) inspect(queue string) (amqp.Queue, bool) {
	r.t.Helper()
	conn, err := amqp.Dial(r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		r.t.Fatal(err)
	}
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	return q, err == nil
}

// waitSubscribed waits until every queue has n consumers.
func (r *rig) waitSubscribed(n int) {
	r.t.Helper()
	eventually(r.t, "subscriptions", func() string {
		for _, key := range event.Keys() {
			if q, ok := r.inspect(r.topology.Queue(key)); !ok || q.Consumers != n {
				return fmt.Sprintf("queue %s has %d consumers, want %d", r.topology.Queue(key), q.Consumers, n)
			}
		}
		return ""
	})
}

// deadLetters waits for n messages in the dead-letter queue of key and takes
// them out.
func (r *rig) deadLetters(key event.Key, n int) []amqp.Delivery {
	r.t.Helper()
	ch := r.channel()
	var letters []amqp.Delivery
	queue := r.topology.DeadLetterQueue(r.topology.Queue(key))
	eventually(r.t, queue, func() string {
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			r.t.Fatal(err)
		}
		if ok {
			letters = append(letters, d)
		}
		if len(letters) < n {
			return fmt.Sprintf("%d dead letters, want %d", len(letters), n)
		}
		return ""
	})
	return letters
}

// counter returns the sum of a metric over all consumers that were started.
func (r *rig) counter(name string) int {
	r.t.Helper()
	var sum float64
	for _, reg := range r.metrics {
		families, err := reg.Gather()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() != name {
				continue
			}
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return int(sum)
}

// waitAcked waits until n deliveries were acknowledged.
func (r *rig) waitAcked(n int) {
	r.t.Helper()
	eventually(r.t, "acknowledgements", func() string {
		if got := r.counter("rabbitmq_messages_acked_total"); got != n {
			return fmt.Sprintf("%d deliveries are acknowledged, want %d", got, n)
		}
		return ""
	})
}
