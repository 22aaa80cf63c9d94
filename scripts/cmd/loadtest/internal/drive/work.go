package drive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/incidents"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/latency"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

// queueLength is how many tasks may be due and not begun. A full queue holds
// up the schedule, but no latency: that counts from when a task was due.
const queueLength = 1 << 16

// Work is the requests of a run.
type work struct {
	cfg        *Config
	town       *town
	people     *people
	ledger     *city.Ledger
	categories map[string]int32

	planned  atomic.Int64
	skipped  atomic.Int64      // no report was open for what was due
	started  *latency.Recorder // how late the load itself was
	answered [kinds]*latency.Recorder
	all      *latency.Recorder

	mu     sync.Mutex
	errors map[string]int64
}

func newWork(cfg *Config, p *people, l *city.Ledger, categories map[string]int32) *work {
	w := &work{
		cfg: cfg, town: newTown(cfg), people: p, ledger: l, categories: categories,
		started: latency.NewRecorder(), all: latency.NewRecorder(), errors: make(map[string]int64),
	}
	for k := range w.answered {
		w.answered[k] = latency.NewRecorder()
	}
	return w
}

// run makes every request when it is due, and returns once all are answered. No request
// is begun after making has ended; ctx ends those under way, too.
func (w *work) run(ctx, making context.Context) {
	tasks := make(chan task, queueLength)
	var workers sync.WaitGroup
	for range w.cfg.Workers {
		workers.Go(func() {
			for next := range tasks {
				if making.Err() == nil {
					w.perform(ctx, next)
				}
			}
		})
	}
	w.schedule(making, tasks)
	close(tasks)
	workers.Wait()
}

// schedule puts each task into the queue when it is due, whatever became of
// those before it.
func (w *work) schedule(ctx context.Context, tasks chan<- task) {
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for at := range w.cfg.pattern().All() {
		due := start.Add(at)
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		w.planned.Add(1)
		next, ok := w.town.next(due)
		if !ok {
			w.skipped.Add(1)
			continue
		}
		select {
		case tasks <- next:
		case <-ctx.Done():
			return
		}
	}
}

func (w *work) perform(ctx context.Context, next task) {
	w.started.Record(time.Since(next.planned))
	e, err := w.request(ctx, next)
	took := time.Since(next.planned)
	w.town.done(next, e.Report, err)
	if err != nil {
		w.fail(next.kind, err)
		return
	}
	e.Planned = next.planned
	w.answered[next.kind].Record(took)
	w.all.Record(took)
	w.ledger.Accept(e)
}

// request makes the request and tells what the ledger has to expect of it.
func (w *work) request(ctx context.Context, next task) (city.Event, error) {
	switch next.kind {
	case filing:
		r, err := w.people.residents[next.actor].CreateReport(ctx, w.newReport(next.number))
		return city.Event{Report: r.ID, Version: r.Version, Owner: city.Officials, Screens: 1<<w.cfg.Officials - 1}, err
	case voting:
		direction := map[bool]string{true: "upvote", false: "downvote"}[next.up]
		v, err := w.people.residents[next.actor].Vote(ctx, next.report.id, direction)
		return next.report.event(v.ReportID, v.Version), err
	default:
		r, err := w.people.officials[next.actor].SetStatus(ctx, next.report.id, next.status, "")
		return next.report.event(r.ID, r.Version), err
	}
}

// event is one that the report's owner gets.
func (r *report) event(id uuid.UUID, version int64) city.Event {
	return city.Event{Report: id, Version: version, Owner: r.owner, Screens: 1}
}

func (w *work) newReport(number int) client.NewReport {
	i := incidents.At(w.cfg.Seed, number)
	privacy := "public"
	if i.Anonymous {
		privacy = "anonymous"
	}
	category, known := w.categories[i.Category]
	if !known {
		category = w.categories[client.OtherCategory]
	}
	return client.NewReport{
		Title: i.Title, Description: fmt.Sprintf("%s at %s. Number %d of a load test.", i.Title, i.Address, number),
		CategoryID: category, Latitude: &i.Latitude, Longitude: &i.Longitude,
		Address: i.Address, PrivacyLevel: client.PrivacyLevel(privacy),
	}
}

// fail counts an error by what it says to whoever reads the report.
func (w *work) fail(k kind, err error) {
	reason := "no answer"
	if e, ok := errors.AsType[*client.Error](err); ok {
		reason = fmt.Sprintf("%d %s", e.Status, e.Name())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors[k.String()+": "+reason]++
}
