package api_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/api"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// A relayState is a relay in a state.
type relayState relay.State

func (s relayState) State() relay.State { return relay.State(s) }

// brokerWith watches a broker with two queues, one of which is consumed.
func brokerWith(t *testing.T, consumed, idle string) *monitor.Broker {
	t.Helper()
	url := rabbittest.Vhost(t)
	ch := rabbittest.Queues(t, url, consumed, idle)
	if _, err := ch.Consume(consumed, "", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	broker := monitor.NewBroker(rabbit.Config{URL: url, Name: "health"}, consumed, idle)
	t.Cleanup(broker.Close)
	return broker
}

// poolOfNone is of a database that is not there.
func poolOfNone(t *testing.T) *pgxpool.Pool {
	t.Helper()
	nowhere, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nowhere.Close)
	return nowhere
}

// Each light of the console says what is wrong, and is never good while what it
// would be read from does not answer.
func TestHealthParts(t *testing.T) { //nolint:funlen // most of it is the table
	t.Parallel()
	const consumed, idle = "queue.consumed", "queue.idle"
	broker := brokerWith(t, consumed, idle)
	unseen := monitor.NewBroker(rabbit.Config{}, consumed, idle) // never read

	nowhere := poolOfNone(t)
	away := monitor.NewDatabase(nowhere, func(context.Context) error { return nil })
	if r := away.Read(t.Context()); r.State != monitor.Bad {
		t.Fatalf("a database that is not there is %+v", r)
	}
	present := monitor.NewDatabase(nil, nil)

	// A reading of the outbox is kept for a moment: each case has a store of its own.
	empty, full := newServer(t), newServer(t)
	full.fileAbout(token(t, "ann", auth.Resident), 2, "Dark lamp")
	stored := func(change string) *outbox.Store {
		t.Helper()
		if _, err := full.pool.Exec(t.Context(), `update outbox_messages set `+change); err != nil {
			t.Fatal(err)
		}
		return outbox.NewStore(full.pool, nil)
	}

	good := monitor.Reading{State: monitor.Good}
	works := relayState{Connected: true, LeaseValid: true}
	for _, tt := range []struct {
		name, part string
		change     func(*api.HealthConfig)
		want       monitor.Reading
	}{
		{"published", "relay", nil, good},
		{"no connection", "relay", func(c *api.HealthConfig) { c.Relay = relayState{LeaseValid: true} }, monitor.Reading{State: monitor.Bad, Cause: "disconnected"}},
		{"the broker blocks", "relay", func(c *api.HealthConfig) {
			c.Relay = relayState{Connected: true, LeaseValid: true, Blocked: "low on memory"}
		}, monitor.Reading{State: monitor.Bad, Cause: "blocked", Names: []string{"low on memory"}}},
		{"queues refuse", "relay", func(c *api.HealthConfig) {
			c.Relay = relayState{Connected: true, LeaseValid: true, OpenCircuits: map[string]string{"b": "full", "a": "full"}}
		}, monitor.Reading{State: monitor.Bad, Cause: "circuits", Names: []string{"a", "b"}, Count: 2}},
		{"connected, no database", "relay", func(c *api.HealthConfig) { c.Database = away }, monitor.Reading{State: monitor.Bad, Cause: monitor.NoDatabase}},
		{"no lease", "relay", func(c *api.HealthConfig) { c.Relay = relayState{Connected: true} }, monitor.Reading{State: monitor.Warning, Cause: "lease"}},

		{"empty outbox", "outbox", nil, good},
		{"outbox", "outbox", func(c *api.HealthConfig) { c.Outbox = stored(`created_at = now()`) }, good},
		{"late", "outbox", func(c *api.HealthConfig) { c.Outbox = stored(`created_at = now() - interval '1 minute'`) }, monitor.Reading{State: monitor.Warning, Cause: "late", Count: 1}},
		{"failed", "outbox", func(c *api.HealthConfig) { c.Outbox = stored(`status = 'failed'`) }, monitor.Reading{State: monitor.Bad, Cause: monitor.Failed, Count: 1}},
		{"outbox, no database", "outbox", func(c *api.HealthConfig) { c.Database = away }, monitor.UnknownFor(monitor.NoDatabase)},
		{"outbox that cannot be read", "outbox", func(c *api.HealthConfig) { c.Outbox = outbox.NewStore(nowhere, nil) }, monitor.UnknownFor(monitor.NoDatabase)},

		{"photos", "photos", nil, good},
		{"no photos", "photos", func(c *api.HealthConfig) { c.Storage = nil }, monitor.Reading{State: monitor.Off}},
		{"no photos to compare", "reconciliation", func(c *api.HealthConfig) {
			c.Storage, c.Compared = nil, func(context.Context) ([]reconciliation.Summary, error) { return nil, nil }
		}, monitor.Reading{State: monitor.Off}},
		{"deleted by hand", "reconciliation", func(c *api.HealthConfig) {
			c.Storage, c.Compared = nil, func(context.Context) ([]reconciliation.Summary, error) {
				return []reconciliation.Summary{{Group: "outbox", Figures: reconciliation.Figures{Deleted: 1}}}, nil
			}
		}, monitor.Reading{State: monitor.Bad, Cause: monitor.Deleted, Names: []string{"outbox"}, Count: 1}},
		{"compared, no database", "reconciliation", func(c *api.HealthConfig) { c.Database = away }, monitor.UnknownFor(monitor.NoDatabase)},
		{"lost", "reconciliation", func(c *api.HealthConfig) {
			c.Compared = func(context.Context) ([]reconciliation.Summary, error) {
				return []reconciliation.Summary{{Group: "photos", Figures: reconciliation.Figures{Missing: 2}}}, nil
			}
		}, monitor.Reading{State: monitor.Bad, Cause: monitor.Missing, Names: []string{"photos"}, Count: 2}},
		{"no storage", "photos", func(c *api.HealthConfig) { c.Storage = func(context.Context) error { return errors.New("full") } }, monitor.Reading{State: monitor.Bad, Cause: "storage"}},
		{"photo-worker is stopped", "photos", func(c *api.HealthConfig) { c.PhotoQueue = idle }, monitor.Reading{State: monitor.Bad, Cause: "stopped", Names: []string{"photo-worker"}, Count: 1}},
		{"photos, no database", "photos", func(c *api.HealthConfig) { c.Database = away }, monitor.Reading{State: monitor.Bad, Cause: monitor.NoDatabase}},
		{"photos, no broker", "photos", func(c *api.HealthConfig) { c.Broker = unseen }, monitor.UnknownFor(monitor.NoBroker)},

		{"jobs", "jobs", nil, good},
		{"jobs unknown", "jobs", func(c *api.HealthConfig) {
			c.Schedules = func(context.Context) ([]schedule.Schedule, error) { return nil, errors.New("away") }
		}, monitor.UnknownFor(monitor.NoDatabase)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if r := broker.Read(t.Context()); r.State != monitor.Good { // counted just now
				t.Fatalf("the broker is %+v", r)
			}
			cfg := api.HealthConfig{
				Database: present, Broker: broker, Relay: works, Outbox: outbox.NewStore(empty.pool, nil),
				Schedules: func(context.Context) ([]schedule.Schedule, error) { return nil, nil },
				Storage:   func(context.Context) error { return nil }, PhotoQueue: consumed,
			}
			if tt.change != nil {
				tt.change(&cfg)
			}
			parts := api.HealthParts(cfg)
			i := slices.IndexFunc(parts, func(p monitor.Part) bool { return p.Name == tt.part })
			if got := parts[i].Read(t.Context()); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
