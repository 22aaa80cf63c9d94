package admin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/open311"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// The causes of parts of this service.
const (
	unconsumed monitor.Cause = "unconsumed" // queues without a consumer
	stalled    monitor.Cause = "stalled"    // workers that make no progress
	stopped    monitor.Cause = "stopped"    // the process that does the work does not run
	open       monitor.Cause = "open"       // dead letters
	disabled   monitor.Cause = "disabled"   // endpoints that failed for too long
	disabling  monitor.Cause = "disabling"  // endpoints that have failed for half of the time after which they are disabled
	failing    monitor.Cause = "failing"    // targets that fail now
	stuck      monitor.Cause = "stuck"      // mails to these hosts
	differing  monitor.Cause = "differing"  // systems of departments

	memoryAlarm monitor.Cause = "memory_alarm" // nodes of the broker that have used up their memory
	diskAlarm   monitor.Cause = "disk_alarm"   // nodes of the broker whose disk is full
	nodeDown    monitor.Cause = "node_down"    // nodes of the broker that do not run
)

// Targets are those outside, to which delivery-worker sends.
type Targets interface {
	// FailingEndpoints returns the names of endpoints that were disabled because they
	// failed, of those that have failed for half of the time after which they are
	// disabled, and of those whose circuit is open.
	FailingEndpoints(ctx context.Context) (disabled, disabling, failing []string, err error)
}

// A HealthConfig has what the parts of the service are read from.
type HealthConfig struct {
	Database *monitor.Database
	Broker   *monitor.Broker
	Nodes    func() []topology.Node // of the broker, as far as they are seen
	Pools    interface{ Pools() []consumer.Pool }
	Letters  interface {
		OpenByQueue(ctx context.Context) (map[string]int64, error)
	}
	Schedules  func(context.Context) ([]schedule.Schedule, error)
	Targets    Targets
	BackOffice interface {
		Worst(ctx context.Context) (open311.Health, []string, error)
	}
	Compared func(context.Context) ([]reconciliation.Summary, error)
	Worker   string // the queue that delivery-worker consumes
	// Mail and Push are channels that the city may not have.
	Mail, Push bool
	Mails      EmailStore
	Rounding   *crowd.Rounding
}

// HealthParts are the parts of notification-service and delivery-worker.
func HealthParts(c HealthConfig) []monitor.Part {
	mails := &mailReader{HealthConfig: c}
	return []monitor.Part{
		{Name: "database", Read: c.Database.Read},
		{Name: "broker", Read: c.readBroker},
		{Name: "consumers", Read: c.readConsumers},
		{Name: "dead_letters", Read: c.readLetters},
		{Name: "mail", Read: ifOn(c.Mail, c.byWorker(mails.read))},
		{Name: "push", Read: ifOn(c.Push, c.byWorker(readPush))},
		{Name: "webhooks", Read: c.byWorker(c.readWebhooks)},
		{Name: "back_office", Read: c.readBackOffice()},
		{Name: "reconciliation", Read: c.readReconciliation},
		{Name: "jobs", Read: monitor.Jobs(c.Schedules)},
	}
}

// ifOn reads a part of the city, or says that it has none.
func ifOn(on bool, read func(context.Context) monitor.Reading) func(context.Context) monitor.Reading {
	if on {
		return read
	}
	return func(context.Context) monitor.Reading { return monitor.Reading{State: monitor.Off} }
}

// readBroker reads whether the broker answers, and what its nodes say of themselves:
// one with an alarm answers, and takes no messages.
func (c HealthConfig) readBroker(ctx context.Context) monitor.Reading {
	r := c.Broker.Read(ctx)
	if r.State != monitor.Good {
		return r
	}
	return judgeNodes(c.Nodes())
}

// judgeNodes is the reading of a broker that answers, with these nodes.
func judgeNodes(nodes []topology.Node) monitor.Reading {
	var memory, disk, down, names []string
	for _, n := range nodes {
		names = append(names, n.Name)
		if n.MemoryAlarm {
			memory = append(memory, n.Name)
		}
		if n.DiskAlarm {
			disk = append(disk, n.Name)
		}
		if !n.Running {
			down = append(down, n.Name)
		}
	}
	switch {
	case memory != nil:
		return monitor.Reading{State: monitor.Bad, Cause: memoryAlarm, Names: memory, Count: int64(len(memory))}
	case disk != nil:
		return monitor.Reading{State: monitor.Bad, Cause: diskAlarm, Names: disk, Count: int64(len(disk))}
	case down != nil:
		return monitor.Reading{State: monitor.Warning, Cause: nodeDown, Names: down, Count: int64(len(down))}
	default:
		return monitor.Reading{State: monitor.Good, Names: names, Count: int64(len(names))}
	}
}

// readConsumers reads who consumes this service's queues. Consumers stay subscribed
// while the database is away, and handle nothing.
func (c HealthConfig) readConsumers(context.Context) monitor.Reading {
	if c.Database.Away() {
		return monitor.Reading{State: monitor.Bad, Cause: monitor.NoDatabase}
	}
	var idle, paused []string
	stalls := 0
	for _, pool := range c.Pools.Pools() {
		if pool.Elsewhere {
			continue
		}
		consumers, err := c.Broker.Consumers(pool.Queue)
		switch {
		case err != nil:
			return monitor.UnknownFor(monitor.NoBroker)
		case pool.Paused:
			paused = append(paused, pool.Queue)
		case consumers == 0:
			idle = append(idle, pool.Queue)
		}
		stalls += pool.Stalled
	}
	switch {
	case idle != nil:
		return monitor.Reading{State: monitor.Bad, Cause: unconsumed, Names: idle, Count: int64(len(idle))}
	case stalls > 0:
		return monitor.Reading{State: monitor.Bad, Cause: stalled, Count: int64(stalls)}
	case paused != nil:
		return monitor.Reading{State: monitor.Warning, Cause: monitor.Paused, Names: paused, Count: int64(len(paused))}
	default:
		return monitor.Reading{State: monitor.Good}
	}
}

func (c HealthConfig) readLetters(ctx context.Context) monitor.Reading {
	byQueue, err := c.Letters.OpenByQueue(ctx)
	if err != nil {
		return monitor.UnknownFor(monitor.NoDatabase)
	}
	if len(byQueue) == 0 {
		return monitor.Reading{State: monitor.Good}
	}
	r := monitor.Reading{State: monitor.Bad, Cause: open, Names: slices.Sorted(maps.Keys(byQueue))}
	for _, n := range byQueue {
		r.Count += n
	}
	return r
}

// byWorker reads what delivery-worker does. That it does not run is known from the
// broker alone, and matters more than what its database says.
func (c HealthConfig) byWorker(read func(context.Context) monitor.Reading) func(context.Context) monitor.Reading {
	return func(ctx context.Context) monitor.Reading {
		consumers, brokerErr := c.Broker.Consumers(c.Worker)
		if brokerErr == nil && consumers == 0 && !c.workerPaused() {
			return monitor.Reading{State: monitor.Bad, Cause: stopped, Names: []string{"delivery-worker"}, Count: 1}
		}
		r := monitor.UnknownFor(monitor.NoDatabase)
		if !c.Database.Away() {
			r = read(ctx)
		}
		if brokerErr != nil && r.State == monitor.Good {
			return monitor.UnknownFor(monitor.NoBroker) // whether the worker runs
		}
		return r
	}
}

// workerPaused reports whether an operator paused the queue of delivery-worker, which
// then has no consumers.
func (c HealthConfig) workerPaused() bool {
	for _, pool := range c.Pools.Pools() {
		if pool.Queue == c.Worker {
			return pool.Paused
		}
	}
	return false
}

func (c HealthConfig) readWebhooks(ctx context.Context) monitor.Reading {
	off, half, bad, err := c.Targets.FailingEndpoints(ctx)
	switch {
	case err != nil:
		return monitor.UnknownFor(monitor.NoDatabase)
	case off != nil:
		return monitor.Reading{State: monitor.Bad, Cause: disabled, Names: off, Count: int64(len(off))}
	case half != nil:
		return monitor.Reading{State: monitor.Warning, Cause: disabling, Names: half, Count: int64(len(half))}
	case bad != nil:
		return monitor.Reading{State: monitor.Warning, Cause: failing, Names: bad, Count: int64(len(bad))}
	case c.workerPaused():
		return monitor.Reading{State: monitor.Warning, Cause: monitor.Paused, Names: []string{c.Worker}, Count: 1}
	default:
		return monitor.Reading{State: monitor.Good}
	}
}

// readBackOffice is off in a city that had no target of Open311 the last time.
func (c HealthConfig) readBackOffice() func(context.Context) monitor.Reading {
	var some atomic.Bool
	read := c.byWorker(c.readTargets)
	return func(ctx context.Context) monitor.Reading {
		if !c.Database.Away() {
			if _, names, err := c.BackOffice.Worst(ctx); err == nil {
				some.Store(len(names) > 0)
			}
		}
		if !some.Load() {
			return monitor.Reading{State: monitor.Off}
		}
		return read(ctx)
	}
}

func (c HealthConfig) readTargets(ctx context.Context) monitor.Reading {
	worst, names, err := c.BackOffice.Worst(ctx)
	r := monitor.Reading{Names: names, Count: int64(len(names))}
	switch {
	case err != nil:
		return monitor.UnknownFor(monitor.NoDatabase)
	case worst == open311.Disabled:
		r.State, r.Cause = monitor.Bad, disabled
	case worst == open311.Failing:
		r.State, r.Cause = monitor.Warning, failing
	case worst == open311.Differing:
		r.State, r.Cause = monitor.Warning, differing
	default:
		return monitor.Reading{State: monitor.Good}
	}
	return r
}

func (c HealthConfig) readReconciliation(ctx context.Context) monitor.Reading {
	if c.Database.Away() {
		return monitor.UnknownFor(monitor.NoDatabase)
	}
	return monitor.Reconciliation(c.Compared)(ctx)
}

// readPush has nothing to add to whether the worker runs: that a push arrived would
// show an operator that somebody was reached.
func readPush(context.Context) monitor.Reading { return monitor.Reading{State: monitor.Good} }

// figuresEvery is how often the mails that are stuck are counted. The figures are the
// same for an hour.
const figuresEvery = time.Minute

// A mailReader reads mails by the figures that reveal no person: a state that
// changed with a single mail would show an operator that somebody was reached.
type mailReader struct {
	HealthConfig
	mu        sync.Mutex
	figures   email.Figures
	countedAt time.Time
}

func (m *mailReader) read(ctx context.Context) monitor.Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.countedAt) > figuresEvery {
		figures, err := m.Mails.MailFigures(ctx, m.Rounding)
		if err != nil {
			return monitor.UnknownFor(monitor.NoDatabase)
		}
		m.figures, m.countedAt = figures, time.Now()
	}
	var hosts []string
	for _, lane := range m.figures.Lanes {
		if lane.Waiting > 0 {
			hosts = append(hosts, lane.Lane)
		}
	}
	if hosts != nil {
		return monitor.Reading{State: monitor.Warning, Cause: stuck, Names: hosts, Count: int64(len(hosts))}
	}
	return monitor.Reading{State: monitor.Good}
}
