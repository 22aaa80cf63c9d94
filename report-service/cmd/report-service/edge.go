package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/operators"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/story"
	"github.com/cityconnect/cityconnect/report-service/internal/api"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/config"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// storageEvery is how often the console's reading asks the storage of photos, which
// may cost money.
const storageEvery = 15 * time.Second

// An edge is the API, with the two ports: the one of the API and the one of the
// operators.
type edge struct {
	handler              http.Handler
	health               *service.Health
	broker               *monitor.Broker
	monitor              *monitor.Monitor
	people               *api.People
	requests, operations net.Listener
}

// costlyShare is the part of the pool's connections that searches, sorted lists, maps
// and exports of everybody may have together, and as many again those of officials.
const costlyShare = 5

func newEdge(ctx context.Context, c *core, cfg config.Config) (*edge, error) {
	log := c.Log
	verifier, err := auth.New(ctx, cfg.Auth, log, auth.RefuseErased(c.eraser.Erased), auth.RefuseAdopted(c.guests.Adopted))
	if err != nil {
		return nil, fmt.Errorf("set up sign-in: %w", err)
	}
	if cfg.CityWords != "" {
		if err := api.AddPreviewWords(cfg.CityWords, cfg.Languages); err != nil {
			return nil, fmt.Errorf("read CITY_WORDS: %w", err)
		}
	}
	gates := api.NewGates(int(c.Pool.Config().MaxConns) / costlyShare)
	city := api.City{Name: string(cfg.CityName), Languages: cfg.Languages, Bounds: cfg.City, Categories: c.categories, Areas: c.areas}
	e := &edge{health: service.NewHealth(log, service.Details{
		Features: map[string]bool{"photos": c.files != nil, "comments": bool(cfg.Comments), "map_bounds": cfg.City != nil, "open311": bool(cfg.Open311), "guests": bool(cfg.Auth.Guests)},
		Schema:   func(ctx context.Context) (uint, error) { return migrations.Applied(ctx, c.Pool) },
	}, slices.Concat(verifier.Checks(), c.storage, c.checks())...)}
	photos := cfg.Topology.Queue(event.PhotoUploadedKey)
	compared := reconciliation.NewResults(c.Pool, outbox.AuditClosing)
	c.Metrics.MustRegister(compared)
	var stored func(context.Context) error
	if len(c.storage) > 0 {
		stored = monitor.Sparingly(storageEvery, c.storage[0].Probe)
	}
	e.broker = monitor.NewBroker(rabbit.Config{URL: cfg.RabbitURL, Name: "monitor", Log: log}, photos)
	e.monitor = monitor.New(api.HealthParts(api.HealthConfig{
		Database: monitor.NewDatabase(c.Pool, c.writes.Probe), Broker: e.broker, Relay: c.relay, Outbox: c.outbox,
		Schedules: c.schedules.List, Storage: stored, PhotoQueue: photos, Compared: compared.Recent,
	})...)
	connections := api.NewConnections(postgres.NewConnections(c.db), postgres.NewFirms(c.db), gates)
	applications := api.Open311{
		City: city, On: bool(cfg.Open311), Applications: postgres.NewOpen311(c.db), PerKey: cfg.Open311PerKey, Connections: connections, Reports: c.reports, Gates: gates,
	}
	open311, err := applications.Handler(log)
	if err != nil {
		return nil, fmt.Errorf("set up Open311: %w", err)
	}
	e.people = api.NewPeople(c.workbench, log)
	e.handler, err = api.New(
		api.Server{Auth: verifier, Health: e.health, Metrics: c.Metrics, Log: log, Open311: open311, People: e.people, Connections: connections},
		append(c.forResidents(cfg, city, gates, verifier, log),
			append(c.forOfficials(cfg, city, gates), applications.Operations(),
				api.Outbox{Store: c.outbox, Relay: c.relay, Story: story.NewStore(c.Pool, photos), History: c.history}.Operations(),
				api.ScheduleAudit{Upkeep: c.upkeep}.Operations(),
				operators.ScheduleOperations(c.schedules), operators.ReconciliationOperations(compared),
				operators.ErasureOperations(c.eraser), operators.HealthOperations(e.monitor))...)...)
	if err != nil {
		return nil, fmt.Errorf("set up API: %w", err)
	}
	if e.requests, err = service.Listen(ctx, cfg.Addr); err != nil {
		return nil, err
	}
	if e.operations, err = service.Listen(ctx, cfg.Operations); err != nil {
		_ = e.requests.Close() // the process ends
		return nil, err
	}
	return e, nil
}

func (c *core) history(ctx context.Context, span time.Duration) (history.History, error) {
	return history.Read(ctx, c.Pool, span)
}

// forResidents are the parts of the API that residents use, and everybody.
func (c *core) forResidents(cfg config.Config, city api.City, gates api.Gates, verifier *auth.Verifier, log zerolog.Logger) []openapi.Operations {
	var comments *postgres.Comments
	if cfg.Comments {
		comments = postgres.NewComments(c.db)
	}
	guests := api.Guests{
		On: bool(cfg.Auth.Guests), Store: c.guests, Settings: c.db.City(), Auth: verifier, PerDay: cfg.GuestReports, PerAddress: cfg.GuestsPerAddress,
		Votes: bool(cfg.GuestVotes), Comments: bool(cfg.GuestComments), Log: log,
	}
	guests.Limit()
	return []openapi.Operations{
		guests.Operations(),
		api.Reports{City: city, Store: c.reports, Guests: guests, PerUser: cfg.ReportsPerUser}.Operations(),
		api.Lists{Reports: c.reports, Gates: gates}.Operations(),
		api.Map{Reports: c.reports, Gates: gates}.Operations(),
		api.OpenData{City: city, Reports: c.reports, Gates: gates}.Operations(),
		api.Previews{City: city, Reports: c.reports}.Operations(),
		api.Votes{Reports: c.reports, PerUser: cfg.VotesPerUser, Guests: guests}.Operations(),
		api.Comments{Store: comments, PerUser: cfg.CommentsPerUser, Guests: guests}.Operations(),
		api.Photos{Store: postgres.NewPhotos(c.db), Files: c.files, Log: log}.Operations(),
		api.Questions{Store: c.questions, PerUser: cfg.ReportsPerUser}.Operations(),
		api.OwnData{Upkeep: c.upkeep, Gates: gates}.Operations(),
	}
}

// forOfficials are the parts of the API that officials use.
func (c *core) forOfficials(cfg config.Config, city api.City, gates api.Gates) []openapi.Operations {
	work := api.Work{Workbench: c.workbench, Duplicates: c.duplicates}
	return []openapi.Operations{
		work.Operations(),
		api.Categories{City: city}.Operations(),
		api.Areas{City: city}.Operations(),
		api.Assets{City: city, Store: postgres.NewAssets(c.db)}.Operations(),
		api.SettingsFile{City: city, Settings: c.db.City()}.Operations(),
		api.Imports{City: city, Store: postgres.NewImports(c.db)}.Operations(),
		api.Moderation{Store: postgres.NewModeration(c.db), Work: work, PerUser: cfg.ReportsPerUser}.Operations(),
		api.Queue{Workbench: c.workbench, Reports: c.reports, Gates: gates}.Operations(),
		api.Moves{Workbench: c.workbench, Reports: c.reports}.Operations(),
		api.Exports{Workbench: c.workbench, Gates: gates}.Operations(),
		api.Numbers{Workbench: c.workbench, Areas: c.areas, Gates: gates}.Operations(),
		api.Settings{Desk: settings.NewDesk(c.db.City())}.Operations(),
		api.Verdicts{Reports: c.reports, Work: work}.Operations(),
		api.Calendar{Settings: c.db.City(), Categories: c.categories}.Operations(),
	}
}

// runMonitor reads the state of the parts until ctx ends.
func (e *edge) runMonitor(ctx context.Context) error {
	defer e.broker.Close()
	return e.monitor.Run(ctx)
}

// checks are what the service needs to answer. The relay is optional: changes
// are accepted while the broker is away.
func (c *core) checks() []service.Check {
	return []service.Check{
		{Name: "database", Probe: c.Pool.Ping},
		{Name: "schema", Probe: func(ctx context.Context) error { return migrations.Check(ctx, c.Pool, migrations.Report) }},
		{Name: "writes", Probe: c.writes.Probe},
		{Name: "restore", Probe: c.restores.Probe},
		{Name: "relay", Probe: c.relay.Probe, Optional: true},
	}
}

// openPhotos returns the storage of photos with its health check, or nothing in
// a city whose reports have no photos.
func openPhotos(cfg config.Config, log zerolog.Logger) (blob.Store, []service.Check, error) {
	if cfg.PhotoStore == "" {
		return nil, nil, nil
	}
	files, err := blob.Open(cfg.Blob())
	if err != nil {
		return nil, nil, fmt.Errorf("open storage of photos: %w", err)
	}
	if blob.IsFolder(cfg.PhotoStore) {
		log.Info().Msg("photos are kept in a folder: replicas on other machines need the same one, or PHOTO_STORE=s3://…")
	}
	return files, []service.Check{{Name: "storage", Probe: files.Check, Optional: true}}, nil
}
