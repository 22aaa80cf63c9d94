package main

import (
	"context"
	"fmt"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/broadcast"
	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notifier"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/program"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/restore"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/schedule"
)

// A core is the database, what keeps it in order, and the way of messages into the streams.
type core struct {
	*program.Base
	db       *postgres.DB
	hub      *sse.Hub
	bus      *broadcast.Bus
	groups   *group.Runner
	restored *restore.Watch
	writes   *pgpool.Writes
	eraser   *erasure.Eraser
	schedule *schedule.Scheduler
	past     *history.Recorder
}

func newCore(base *program.Base, cfg config.Config) (*core, error) {
	pool, log, metrics := base.Pool, base.Log, base.Metrics
	c := &core{Base: base, eraser: erasure.New(pool, cfg.Keys, postgres.ErasureSteps(cfg.Keys), log)}
	options := postgres.Options{
		Mail: cfg.Mail.Enabled(), MailDue: cfg.Mail.ReadFirst, Push: cfg.Push.Enabled(), Erased: c.eraser, Keys: cfg.Keys,
	}
	if cfg.Mail.Officials != "" {
		options.Notices = []string{email.Officials}
	}
	c.db = postgres.New(pool, options)
	c.restored = restore.New(pool, c.db.Streams.StartOver, log)
	tables, err := migrations.Tables(migrations.Notification)
	if err != nil {
		return nil, err
	}
	c.writes = pgpool.NewWrites(pool, tables, log)
	c.schedule, err = schedule.New(schedule.Dependencies{Pool: pool, Audit: admin.AuditSchedule, Log: log, Metrics: metrics},
		retention.Job(append(cfg.Retention.Tasks(), erasure.Tasks(cfg.Retention.Audit)...), metrics))
	if err != nil {
		return nil, fmt.Errorf("set up schedules: %w", err)
	}
	c.hub = sse.New(cfg.Stream, c.db.Streams, log, metrics)
	c.bus = broadcast.New(broadcast.Config{
		Hub: c.hub, Keyring: cfg.Keys, Topology: cfg.Topology, Metrics: metrics,
		Rabbit: rabbit.Config{URL: cfg.RabbitURL, Log: log},
	})
	c.groups, err = group.New(cfg.Consumer, group.Dependencies{
		Database: pool, RabbitURL: cfg.RabbitURL, ManagementURL: cfg.ManagementURL, Names: cfg.Topology, Log: log, Metrics: metrics,
		Writable: c.writes.Probe, Await: c.awaitDatabase, Scrub: c.db.Erased.Scrub,
	}, notifier.New(c.db.Effects, c.bus, cfg.Keys).Group(), notifier.NewAdopter(c.db.Adoptions, c.bus, cfg.Keys).Group(),
		notifier.FirmGroup(pool, cfg.Keys), webhook.Group(c.db.Endpoints, nil)) // which delivery-worker reads
	if err != nil {
		return nil, err
	}
	c.past = history.NewRecorder(pool, func(context.Context) history.Figures { return admin.PoolFigures(c.groups.Consumer) }, log)
	return c, nil
}

// awaitDatabase returns once it is known whether the database was restored, and
// the steps after a restore are done.
func (c *core) awaitDatabase(ctx context.Context) error {
	if err := c.restored.Await(ctx); err != nil {
		return err
	}
	_ = c.writes.Probe(ctx) // advances sequences that a restore left behind; the health check repeats it
	c.hub.Compare()         // a stream that was opened before may be of before a restore
	return nil
}
