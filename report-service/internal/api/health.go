package api

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
)

// The causes of parts of this service.
const (
	disconnected monitor.Cause = "disconnected" // the relay has no connection to the broker
	blocked      monitor.Cause = "blocked"      // the broker takes no messages
	circuits     monitor.Cause = "circuits"     // queues refuse messages
	noLease      monitor.Cause = "lease"        // the relay may publish nothing
	late         monitor.Cause = "late"         // messages wait for longer than lateAfter
	stopped      monitor.Cause = "stopped"      // the process that does the work does not run
	storage      monitor.Cause = "storage"      // photos can neither be stored nor served
)

// lateAfter is from when on a message of the outbox is late.
const lateAfter = 10 * time.Second

// A HealthConfig has what the parts of the service are read from.
type HealthConfig struct {
	Database   *monitor.Database
	Broker     *monitor.Broker
	Relay      Relay
	Outbox     *outbox.Store
	Schedules  func(context.Context) ([]schedule.Schedule, error)
	Storage    func(context.Context) error // of photos; nil in a city whose reports have none
	PhotoQueue string                      // which photo-worker consumes
	Compared   func(context.Context) ([]reconciliation.Summary, error)
}

// HealthParts are the parts of report-service and photo-worker.
func HealthParts(c HealthConfig) []monitor.Part {
	return []monitor.Part{
		{Name: "database", Read: c.Database.Read},
		{Name: "broker", Read: c.Broker.Read},
		{Name: "relay", Read: c.readRelay},
		{Name: "outbox", Read: c.readOutbox},
		{Name: "photos", Read: c.readPhotos},
		{Name: "reconciliation", Read: c.readReconciliation},
		{Name: "jobs", Read: monitor.Jobs(c.Schedules)},
	}
}

// readRelay reads this replica's relay, which knows its own state.
func (c HealthConfig) readRelay(context.Context) monitor.Reading {
	s := c.Relay.State()
	switch {
	case !s.Connected:
		return monitor.Reading{State: monitor.Bad, Cause: disconnected}
	case s.Blocked != "":
		return monitor.Reading{State: monitor.Bad, Cause: blocked, Names: []string{s.Blocked}}
	case len(s.OpenCircuits) > 0:
		return monitor.Reading{State: monitor.Bad, Cause: circuits, Names: slices.Sorted(maps.Keys(s.OpenCircuits)), Count: int64(len(s.OpenCircuits))}
	case c.Database.Away():
		return monitor.Reading{State: monitor.Bad, Cause: monitor.NoDatabase}
	case !s.LeaseValid:
		return monitor.Reading{State: monitor.Warning, Cause: noLease}
	default:
		return monitor.Reading{State: monitor.Good}
	}
}

func (c HealthConfig) readOutbox(ctx context.Context) monitor.Reading {
	if c.Database.Away() {
		return monitor.UnknownFor(monitor.NoDatabase)
	}
	stats, err := c.Outbox.Recent(ctx)
	switch {
	case err != nil:
		return monitor.UnknownFor(monitor.NoDatabase)
	case stats.Failed > 0:
		return monitor.Reading{State: monitor.Bad, Cause: monitor.Failed, Count: stats.Failed}
	case stats.OldestAge > lateAfter:
		return monitor.Reading{State: monitor.Warning, Cause: late, Count: stats.Pending}
	default:
		return monitor.Reading{State: monitor.Good}
	}
}

// readReconciliation reads what photo-worker found out, whose group is the only one with
// this database, and what was deleted from the outbox.
func (c HealthConfig) readReconciliation(ctx context.Context) monitor.Reading {
	if c.Database.Away() {
		return monitor.UnknownFor(monitor.NoDatabase)
	}
	r := monitor.Reconciliation(c.Compared)(ctx)
	if c.Storage == nil && r.Cause == monitor.NotRead { // there is no group
		return monitor.Reading{State: monitor.Off}
	}
	return r
}

// readPhotos reads whether photos are stored and checked. That photo-worker does not
// run is known from the broker alone.
func (c HealthConfig) readPhotos(ctx context.Context) monitor.Reading {
	if c.Storage == nil {
		return monitor.Reading{State: monitor.Off}
	}
	if c.Database.Away() { // an upload is neither accepted nor finished
		return monitor.Reading{State: monitor.Bad, Cause: monitor.NoDatabase}
	}
	if err := c.Storage(ctx); err != nil {
		return monitor.Reading{State: monitor.Bad, Cause: storage}
	}
	consumers, err := c.Broker.Consumers(c.PhotoQueue)
	switch {
	case err != nil:
		return monitor.UnknownFor(monitor.NoBroker)
	case consumers == 0:
		return monitor.Reading{State: monitor.Bad, Cause: stopped, Names: []string{"photo-worker"}, Count: 1}
	default:
		return monitor.Reading{State: monitor.Good}
	}
}
