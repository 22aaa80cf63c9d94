// Package consumertest puts the parts that handle messages together for tests,
// on a real broker and a real database. Its group reads the queues of the
// contract, and its effect is a row in the table effects, which takes any number
// of rows for a message: a message with two effects is counted twice.
package consumertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/forwarder"
	"github.com/cityconnect/cityconnect/platform/program"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/platform/testing/testlog"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// key is fixed, so that a subprocess can open what the test sealed.
const key = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// A Harness is a broker and a database, and whatever a test starts on them.
type Harness struct {
	URL      string // of the broker
	Pool     *pgxpool.Pool
	Letters  *deadletter.Store
	Topology event.Topology
	Log      zerolog.Logger

	t       *testing.T
	keyring *event.Keyring
	out     *amqp.Channel // to publish on
	metrics []prometheus.Gatherer
}

// New returns a harness on a virtual host of t alone, and on pool.
func New(t *testing.T, pool *pgxpool.Pool) *Harness {
	t.Helper()
	return On(t, rabbittest.Vhost(t), pool)
}

// On returns a harness on the given broker and database.
func On(t *testing.T, url string, pool *pgxpool.Pool) *Harness {
	t.Helper()
	h := &Harness{URL: url, Pool: pool, Letters: deadletter.NewStore(pool), Log: testlog.New(t), t: t, keyring: keyring()}
	if _, err := pool.Exec(t.Context(), effectsSQL); err != nil {
		t.Fatal(err)
	}
	return h
}

func keyring() *event.Keyring {
	k, err := event.ParseKeyring(key)
	if err != nil {
		panic(err)
	}
	return k
}

const effectsSQL = `
create table if not exists effects (
  queue text not null,
  message_id text not null,
  at timestamptz not null default clock_timestamp()
)`

// Effect returns the harness's effect on pool.
func Effect(pool *pgxpool.Pool) consumer.Effect {
	return consumer.InTx(pool, func(ctx context.Context, tx pgx.Tx, messages []consumer.Message) error {
		queues, ids := make([]string, len(messages)), make([]string, len(messages))
		for i, m := range messages {
			queues[i], ids[i] = event.Topology{}.Queue(m.Event.Key()), m.ID
		}
		_, err := tx.Exec(ctx, `insert into effects (queue, message_id) select * from unnest($1::text[], $2::text[])`, queues, ids)
		return err
	})
}

// An Option changes what a consumer is made of.
type Option func(*consumer.Config, *consumer.Dependencies, *consumer.Group)

// config is the service's own, with one worker.
func config() consumer.Config {
	c := consumer.Defaults()
	c.Workers = 1
	return c
}

// WithEffect puts an effect, most often one around the harness's, in its place.
func WithEffect(e consumer.Effect) Option {
	return func(_ *consumer.Config, _ *consumer.Dependencies, g *consumer.Group) { g.Effect = e }
}

// WithForwarder puts what wrap returns in the place of the forwarder.
func WithForwarder(wrap func(consumer.Forwarder) consumer.Forwarder) Option {
	return func(_ *consumer.Config, d *consumer.Dependencies, _ *consumer.Group) { d.Forwarder = wrap(d.Forwarder) }
}

// WithParker puts p in the place of the releaser, which does not run then.
func WithParker(p consumer.Parker) Option {
	return func(_ *consumer.Config, d *consumer.Dependencies, _ *consumer.Group) { d.Parker = p }
}

// WithConfig changes the configuration.
func WithConfig(change func(*consumer.Config)) Option {
	return func(c *consumer.Config, _ *consumer.Dependencies, _ *consumer.Group) { change(c) }
}

// Start runs a consumer, and returns what stops it and waits for its end. It
// is stopped when the test ends at the latest.
func (h *Harness) Start(options ...Option) (c *consumer.Consumer, stop func()) {
	h.t.Helper()
	reg := prometheus.NewRegistry()
	h.metrics = append(h.metrics, reg)
	p, err := Assemble(h.URL, h.Pool, h.Log, reg, options...)
	if err != nil {
		h.t.Fatal(err)
	}
	return p.Consumer, h.run(p.Run)
}

// StartArchive runs the archiver and a replayer, and returns what stops them.
func (h *Harness) StartArchive() (stop func()) {
	h.t.Helper()
	archiver := deadletter.NewArchiver(h.Letters, rabbit.Config{URL: h.URL, Name: "test archiver", Log: h.Log}, broker())
	stopArchiver := h.run(archiver.Run)
	stopReplayer := h.run(func(ctx context.Context) error { return Replay(ctx, h.URL, h.Letters, h.Log) })
	return func() { stopArchiver(); stopReplayer() }
}

func (h *Harness) run(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			h.t.Errorf("run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	h.t.Cleanup(stop)
	return stop
}

const groupName = "notifications"

func broker() *topology.Topology {
	return topology.New(event.Topology{}, nil, topology.Group{Name: groupName, Queues: topology.ContractQueues()})
}

// A Process is a consumer with everything that it needs, as the service has it.
type Process struct {
	Consumer  *consumer.Consumer
	releaser  *delay.Releaser
	releases  bool // what the consumer parks
	checker   *topology.Checker
	forwarder *forwarder.Forwarder
}

// Assemble wires a Process on a broker and a database. It is for subprocesses;
// tests use Start.
func Assemble(url string, pool *pgxpool.Pool, log zerolog.Logger, reg *prometheus.Registry, options ...Option) (*Process, error) {
	p, t := &Process{}, broker()
	var err error
	p.checker, err = topology.NewChecker(t, os.Getenv("TEST_RABBITMQ_MANAGEMENT_URL"), rabbit.Config{URL: url, Name: "test checker", Log: log})
	if err != nil {
		return nil, err
	}
	p.forwarder = forwarder.New(rabbit.Config{URL: url, Name: "test forwarder", Log: log}, reg, p.checker.Unroutable)
	cfg, deps := config(), consumer.Dependencies{
		Database: pool, Forwarder: p.forwarder, Topology: t,
		Rabbit: rabbit.Config{URL: url, Name: "test consumer", Log: log}, Log: log, Metrics: reg,
	}
	group := consumer.Group{Name: groupName, Queues: topology.ContractQueues(), Effect: Effect(pool)}
	for _, o := range options {
		o(&cfg, &deps, &group)
	}
	p.releaser = delay.NewReleaser(cfg.Delay, delay.NewStore(pool), p.forwarder, p.checker.Unroutable, reg, log)
	if p.releases = deps.Parker == nil; p.releases {
		deps.Parker = p.releaser
	}
	p.Consumer, err = consumer.New(cfg, deps, group)
	return p, err
}

// Run consumes until ctx ends and everything has drained. The consumer still moves its
// messages in hand then.
func (p *Process) Run(ctx context.Context) error {
	parts := []program.Part{p.Consumer.Run}
	if p.releases {
		parts = append(parts, p.releaser.Run)
	}
	return program.Run(ctx, parts, []program.Part{p.forwarder.Run, p.checker.Run})
}

// Replay runs a replayer with a forwarder of its own until ctx ends.
func Replay(ctx context.Context, url string, letters *deadletter.Store, log zerolog.Logger) error {
	fwd := forwarder.New(rabbit.Config{URL: url, Name: "test replay forwarder", Log: log}, prometheus.NewRegistry(), func(string, string) {})
	return program.Run(ctx, []program.Part{deadletter.NewReplayer(letters, fwd, log).Run}, []program.Part{fwd.Run})
}

// Eventually waits until check has nothing more to wish for.
func (h *Harness) Eventually(what string, check func() (missing string)) {
	h.t.Helper()
	eventually.NothingMissing(h.t, what, check)
}

// EventuallyEqual waits until got returns want.
func (h *Harness) EventuallyEqual(what string, want int, got func() int) {
	h.t.Helper()
	h.Eventually(what, func() string {
		if n := got(); n != want {
			return fmt.Sprintf("got %d, want %d", n, want)
		}
		return ""
	})
}
