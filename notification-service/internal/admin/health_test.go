package admin_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/open311"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// A world is what the lights are read from, for a test to change.
type world struct {
	pools                 []consumer.Pool
	open                  map[string]int64
	disabled, half, fails []string
	targets               open311.Health
	named                 []string // targets
	figures               email.Figures
	err                   error // of the database
}

func (w *world) Pools() []consumer.Pool                                { return w.pools }
func (w *world) OpenByQueue(context.Context) (map[string]int64, error) { return w.open, w.err }
func (w *world) FailingEndpoints(context.Context) (disabled, disabling, failing []string, err error) {
	return w.disabled, w.half, w.fails, w.err
}

func (w *world) Worst(context.Context) (open311.Health, []string, error) {
	return w.targets, w.named, w.err
}

func (w *world) MailFigures(context.Context, *crowd.Rounding) (email.Figures, error) {
	return w.figures, w.err
}

func (w *world) schedules(context.Context) ([]schedule.Schedule, error) { return nil, w.err }

// A broker with a queue that is consumed, and one that is not.
func brokerOf(t *testing.T, consumed, idle string) *monitor.Broker {
	t.Helper()
	url := rabbittest.Vhost(t)
	ch := rabbittest.Queues(t, url, consumed, idle)
	if _, err := ch.Consume(consumed, "", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	b := monitor.NewBroker(rabbit.Config{URL: url, Name: "health"}, consumed, idle)
	t.Cleanup(b.Close)
	if r := b.Read(t.Context()); r.State != monitor.Good {
		t.Fatalf("the broker is %+v", r)
	}
	return b
}

// awayDatabase returns a database that does not answer.
func awayDatabase(t *testing.T) *monitor.Database {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	d := monitor.NewDatabase(pool, func(context.Context) error { return nil })
	if r := d.Read(t.Context()); r.State != monitor.Bad || !d.Away() {
		t.Fatalf("a database that is not there is %+v", r)
	}
	return d
}

// Each light of the console says what is wrong, and is never good while what it
// would be read from does not answer.
func TestHealthParts(t *testing.T) {
	t.Parallel()
	const consumed, idle = "queue.consumed", "queue.idle"
	broker := brokerOf(t, consumed, idle)
	unseen := monitor.NewBroker(rabbit.Config{}, consumed, idle) // never read
	present := monitor.NewDatabase(nil, nil)
	away := awayDatabase(t)
	good := monitor.Reading{State: monitor.Good}
	stuck := email.Figures{Lanes: []email.LaneStatus{{Lane: "gmail.com", Waiting: 40}, {Lane: email.Others}}}
	working, stopped := consumed, idle // queues of delivery-worker

	for _, tt := range []struct {
		name     string
		part     string
		world    world
		database *monitor.Database
		broker   *monitor.Broker
		worker   string
		off      bool // no mails, no pushes
		nodes    []topology.Node
		want     monitor.Reading
	}{
		{name: "consumed", part: "consumers", world: world{pools: []consumer.Pool{{Queue: consumed}}}, want: good},
		{name: "not consumed", part: "consumers", world: world{pools: []consumer.Pool{{Queue: consumed}, {Queue: idle}}}, want: bad("unconsumed", 1, idle)},
		{name: "not consumed elsewhere", part: "consumers", world: world{pools: []consumer.Pool{{Queue: idle, Elsewhere: true}}}, want: good},
		{name: "paused", part: "consumers", world: world{pools: []consumer.Pool{{Queue: idle, Paused: true}}}, want: warning(monitor.Paused, idle)},
		{name: "stalled", part: "consumers", world: world{pools: []consumer.Pool{{Queue: consumed, Stalled: 2}}}, want: bad("stalled", 2)},
		{name: "consumed, no database", part: "consumers", world: world{pools: []consumer.Pool{{Queue: consumed}}}, database: away, want: bad(monitor.NoDatabase, 0)},
		{name: "no broker", part: "consumers", world: world{pools: []consumer.Pool{{Queue: consumed}}}, broker: unseen, want: monitor.UnknownFor(monitor.NoBroker)},

		{name: "a broker whose nodes are not seen", part: "broker", want: good},
		{name: "nodes", part: "broker", nodes: []topology.Node{{Name: "a", Running: true}, {Name: "b", Running: true}}, want: monitor.Reading{State: monitor.Good, Names: []string{"a", "b"}, Count: 2}},
		{name: "a node's memory is used up", part: "broker", nodes: []topology.Node{{Name: "a"}, {Name: "b", Running: true, MemoryAlarm: true, DiskAlarm: true}}, want: bad("memory_alarm", 1, "b")},
		{name: "a node's disk is full", part: "broker", nodes: []topology.Node{{Name: "a"}, {Name: "b", Running: true, DiskAlarm: true}}, want: bad("disk_alarm", 1, "b")},
		{name: "a node does not run", part: "broker", nodes: []topology.Node{{Name: "a"}, {Name: "b", Running: true}}, want: warning("node_down", "a")},

		{name: "no letters", part: "dead_letters", want: good},
		{name: "letters", part: "dead_letters", world: world{open: map[string]int64{"queue.b": 2, "queue.a": 3}}, want: bad("open", 5, "queue.a", "queue.b")},
		{name: "letters unknown", part: "dead_letters", world: world{err: errors.New("away")}, want: monitor.UnknownFor(monitor.NoDatabase)},

		{name: "webhooks", part: "webhooks", want: good},
		{name: "an endpoint is disabled", part: "webhooks", world: world{disabled: []string{"town hall"}, fails: []string{"roads"}}, want: bad("disabled", 1, "town hall")},
		{name: "an endpoint has failed for long", part: "webhooks", world: world{half: []string{"town hall"}, fails: []string{"roads"}}, want: warning("disabling", "town hall")},
		{name: "an endpoint fails", part: "webhooks", world: world{fails: []string{"roads"}}, want: warning("failing", "roads")},
		{name: "the worker's queue is paused", part: "webhooks", worker: stopped, world: world{pools: []consumer.Pool{{Queue: stopped, Paused: true}}}, want: warning(monitor.Paused, stopped)},
		{name: "the worker is stopped", part: "webhooks", worker: stopped, want: bad("stopped", 1, "delivery-worker")},
		{name: "the worker is stopped, no database", part: "webhooks", worker: stopped, database: away, want: bad("stopped", 1, "delivery-worker")},
		{name: "webhooks, no database", part: "webhooks", database: away, want: monitor.UnknownFor(monitor.NoDatabase)},
		{name: "webhooks, no broker", part: "webhooks", broker: unseen, want: monitor.UnknownFor(monitor.NoBroker)},
		{name: "an endpoint is disabled, no broker", part: "webhooks", broker: unseen, world: world{disabled: []string{"town hall"}}, want: bad("disabled", 1, "town hall")},

		{name: "mails", part: "mail", world: world{figures: email.Figures{Lanes: []email.LaneStatus{{Lane: email.Others}}}}, want: good},
		{name: "mails are stuck", part: "mail", world: world{figures: stuck}, want: warning("stuck", "gmail.com")},
		{name: "mails unknown", part: "mail", world: world{err: errors.New("away")}, want: monitor.UnknownFor(monitor.NoDatabase)},
		{name: "no mails", part: "mail", off: true, worker: stopped, want: monitor.Reading{State: monitor.Off}},
		{name: "pushes", part: "push", want: good},
		{name: "pushes, the worker is stopped", part: "push", worker: stopped, want: bad("stopped", 1, "delivery-worker")},
		{name: "no pushes", part: "push", off: true, want: monitor.Reading{State: monitor.Off}},

		{name: "jobs", part: "jobs", want: good},
		{name: "jobs unknown", part: "jobs", world: world{err: errors.New("away")}, want: monitor.UnknownFor(monitor.NoDatabase)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := tt.world
			cfg := admin.HealthConfig{
				Database: present, Broker: broker, Nodes: func() []topology.Node { return tt.nodes }, Pools: &w, Letters: &w, Schedules: w.schedules, Targets: &w, BackOffice: &w,
				Worker: working, Mail: !tt.off, Push: !tt.off, Mails: &w,
			}
			if tt.database != nil {
				cfg.Database = tt.database
			}
			if tt.broker != nil {
				cfg.Broker = tt.broker
			} else if r := broker.Read(t.Context()); r.State != monitor.Good { // counted just now
				t.Fatalf("the broker is %+v", r)
			}
			if tt.worker != "" {
				cfg.Worker = tt.worker
			}
			if got := readPart(t, admin.HealthParts(cfg), tt.part); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// The light of departments' systems shows the worst of them.
func TestHealthOfBackOffice(t *testing.T) {
	t.Parallel()
	const consumed, idle = "queue.consumed", "queue.idle"
	broker := brokerOf(t, consumed, idle)
	works := []string{"works"}
	for _, tt := range []struct {
		world  world
		worker string
		want   monitor.Reading
	}{
		{world{targets: open311.Well, named: works}, consumed, monitor.Reading{State: monitor.Good}},
		{world{}, consumed, monitor.Reading{State: monitor.Off}},
		{world{targets: open311.Disabled, named: works}, consumed, bad("disabled", 1, "works")},
		{world{targets: open311.Failing, named: works}, consumed, warning("failing", "works")},
		{world{targets: open311.Differing, named: works}, consumed, warning("differing", "works")},
		{world{targets: open311.Well, named: works}, idle, bad("stopped", 1, "delivery-worker")},
		{world{}, idle, monitor.Reading{State: monitor.Off}},
		{world{err: errors.New("away")}, consumed, monitor.Reading{State: monitor.Off}},
	} {
		parts := admin.HealthParts(admin.HealthConfig{Database: monitor.NewDatabase(nil, nil), Broker: broker, Pools: &tt.world, BackOffice: &tt.world, Worker: tt.worker})
		if got := readPart(t, parts, "back_office"); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v, worker %s: got %+v, want %+v", tt.world, tt.worker, got, tt.want)
		}
		tt.world.err = errors.New("away")
		if got := readPart(t, parts, "back_office"); tt.world.named != nil && tt.worker == consumed && !reflect.DeepEqual(got, monitor.UnknownFor(monitor.NoDatabase)) {
			t.Errorf("%+v, database away: got %+v", tt.world, got)
		}
	}
}

func bad(cause monitor.Cause, count int64, names ...string) monitor.Reading {
	return monitor.Reading{State: monitor.Bad, Cause: cause, Names: names, Count: count}
}

func warning(cause monitor.Cause, names ...string) monitor.Reading {
	return monitor.Reading{State: monitor.Warning, Cause: cause, Names: names, Count: int64(len(names))}
}

// readPart reads the part of that name.
func readPart(t *testing.T, parts []monitor.Part, name string) monitor.Reading {
	t.Helper()
	i := slices.IndexFunc(parts, func(p monitor.Part) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no part %s", name)
	}
	return parts[i].Read(t.Context())
}
