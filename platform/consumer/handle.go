package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// maxStarts is how often a message may be started after a process died with
// it in hand. Being there once is an accident; the third time it is the cause.
const maxStarts = 3

// errStopped says that the worker was stopped before the database was back.
// Messages in hand stay unsettled, and the broker delivers them again.
var errStopped = errors.New("stopped")

// A job is a delivery that was read.
type job struct {
	d         *amqp.Delivery
	msg       Message
	err       error     // why the delivery is not understood
	notBefore time.Time // when it may have its effect; zero is now
	noted     bool      // its start is noted
	// waitsNoMore says that it is handled though the message before it is missing.
	waitsNoMore bool
}

// A journal is what a handler keeps in the database besides the effects; store
// is one.
type journal interface {
	ping(ctx context.Context) error
	writable(ctx context.Context) error
	start(ctx context.Context, queue, messageID string) (int, error)
	giveBack(ctx context.Context, queue, messageID string) error
	await(ctx context.Context, queue string, messageIDs []string) error
	finish(ctx context.Context, queue, messageID string) error
	previous(ctx context.Context, queue string, ids []uuid.UUID) (lookup, error)
}

// A handler brings the deliveries of one subscription to their outcome. These
// are the states of a delivery:
//
//	received ──┬─ redelivered ─► alone ──┬─ done ──────────────────────────────► acknowledged
//	           │                   ▲     │                                            ▲
//	           │          isolated │     └─ failed ─┬─ attempts left ─► retry queue ──┤
//	           │                   │                │                                 │
//	           ├─ else ─────► in a batch ── done ───┼─────────────────────────────────┤
//	           │                                    │                                 │
//	           ├─ not understood ───────────────────┴─ none left ─────► dead letter ──┤
//	           │                                                    (published, confirmed)
//	           └─ its time has not come, or the message before it ─────► parked ──────┘
//	                                                                (a row, committed)
//
// Of a failed batch each failing message is isolated. One whose turn has not come, as
// its effect says, waits in a retry queue without having failed.
// While the database is away a delivery keeps its state. Whatever is not acknowledged
// when its channel ends is delivered again, marked as redelivered.
type handler struct {
	queue     string
	keys      []event.Key // of its messages
	effect    Effect
	store     journal
	forwarder Forwarder
	parker    Parker
	breaker   *databaseBreaker
	timeout   time.Duration   // of a transaction
	schedule  []time.Duration // before each further attempt
	patience  time.Duration   // for the message before another
	since     func(ctx context.Context) (time.Time, error)
	topology  *topology.Topology
	acks      ackTracker
	stats     *queueStats
	metrics   *metrics
	log       zerolog.Logger

	forwarding sync.WaitGroup
}

// handle brings every job of the batch to its outcome, in the order of the events as
// far as the batch knows it: messages that were delivered before go first, and
// changes of one report by their version, so that the last one shown is the present
// one. Between batches of several workers there is no order, but for messages that say
// which one is before them: they are parked until that has had its effect.
func (h *handler) handle(work context.Context, batch []*job) {
	h.acks.track(batch)
	var first, duplicates, redelivered []*job
	ids := make(map[string]bool, len(batch))
	for _, j := range h.park(work, batch) {
		switch {
		case j.err != nil:
			h.fail(work, j, j.err)
		case j.d.Redelivered:
			redelivered = append(redelivered, j)
		case ids[j.msg.ID]: // the same message twice: the second finds the first one's effect
			duplicates = append(duplicates, j)
		default:
			ids[j.msg.ID] = true
			first = append(first, j)
		}
	}
	sortByVersion(redelivered)
	for _, j := range redelivered {
		h.applyIsolated(work, j)
	}
	sortByVersion(first)
	h.applyBatch(work, first)
	for _, j := range duplicates {
		h.applyBatch(work, []*job{j})
	}
}

// sortByVersion puts the jobs of each report into the order of its versions, in
// the places that they have together. A batch is too small for more than this.
func sortByVersion(jobs []*job) {
	for i, a := range jobs {
		for k, b := range jobs[i+1:] {
			first, second := a.msg.Event.About(), b.msg.Event.About()
			if second.ReportID == first.ReportID && second.ReportVersion < first.ReportVersion {
				jobs[i], jobs[i+1+k] = b, a
				a = b
			}
		}
	}
}

// applyBatch gives the jobs their effect in one transaction. If that fails, those that
// fail are isolated, so that each does so alone, for its own reason. stopped reports
// that the worker was stopped before all had come to their outcome.
func (h *handler) applyBatch(work context.Context, jobs []*job) (stopped bool) {
	for len(jobs) > 0 {
		var seen int
		var ready, early []*job
		var at time.Time
		now, began := jobs, time.Now()
		err := h.withDatabase(work, func(ctx context.Context, probe bool) (err error) {
			if now = jobs; probe {
				now = jobs[:1]
			}
			if ready, early, at, err = h.split(ctx, now); err != nil || len(ready) == 0 {
				return err
			}
			seen, err = h.apply(ctx, ready)
			return err
		})
		jobs = jobs[len(now):]
		switch {
		case errors.Is(err, errStopped):
			return true
		case err == nil:
			h.done(ready, seen)
			due, cut := h.parkEarly(work, early, at)
			if cut {
				return true
			}
			jobs = append(due, jobs...)
		case len(now) > 1:
			h.isolate(work, now, time.Since(began))
		case failure.Classify(err) == failure.Postponed:
			h.postpone(work, now[0], err)
		default:
			h.fail(work, now[0], err)
		}
	}
	return false
}

func (h *handler) apply(ctx context.Context, jobs []*job) (seen int, err error) {
	start := time.Now()
	seen, err = h.effect.Apply(ctx, h.queue, messages(jobs))
	decided, _ := errors.AsType[*failure.Error](err)
	postponed := decided != nil && decided.Class == failure.Postponed
	h.metrics.handled(h.queue, time.Since(start), err != nil && !postponed)
	if postponed || decided != nil && decided.Class == failure.Away {
		h.await(ctx, jobs)
	}
	return seen, err
}

// await notes that jobs wait for something else than the database, outside of what
// the broker counts as waiting in their queue, so that they are not said to be missing.
func (h *handler) await(work context.Context, jobs []*job) {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.msg.ID
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), pingTimeout)
	defer cancel()
	if err := h.store.await(ctx, h.queue, ids); err != nil {
		h.log.Warn().Str("queue", h.queue).Str("error", failure.Describe(err)).Msg("noting that messages wait failed, reconciliation may call them missing")
	}
}

func messages(jobs []*job) []Message {
	batch := make([]Message, len(jobs))
	for i, j := range jobs {
		batch[i] = j.msg
	}
	return batch
}

// done acknowledges jobs that have their effect; seen of them had it before.
func (h *handler) done(jobs []*job, seen int) {
	h.metrics.duplicates.WithLabelValues(h.queue).Add(float64(seen))
	h.acks.done(jobs...)
	for _, j := range jobs {
		h.about(h.log.Debug(), j).Msg("message handled")
	}
	h.noteWaits(jobs)
}

// applyIsolated runs a message that was in hand when a process died, or when a
// connection did. Its neighbours do not share its transaction, and its start is
// noted, so that the next process can tell if this one dies of it.
func (h *handler) applyIsolated(work context.Context, j *job) {
	var starts int
	err := h.withDatabase(work, func(ctx context.Context, _ bool) (err error) {
		starts, err = h.store.start(ctx, h.queue, j.msg.ID)
		return err
	})
	if errors.Is(err, errStopped) {
		return
	}
	j.noted = true
	switch {
	case err != nil:
		h.fail(work, j, err)
	case starts > maxStarts:
		h.fail(work, j, &failure.Error{Class: failure.Poison, Text: "the process died each time that this message was started"})
	case h.applyBatch(work, []*job{j}):
		h.giveBack(work, j)
	}
}

// giveBack takes back the start of a message that goes back to the queue because the
// worker was stopped. This process has not died of it, however often that happens; a
// long piece of work meets a restart more than once.
func (h *handler) giveBack(work context.Context, j *job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), pingTimeout)
	defer cancel()
	if err := h.store.giveBack(ctx, h.queue, j.msg.ID); err != nil {
		h.log.Warn().Str("queue", h.queue).Str("error", failure.Describe(err)).Msg("taking back the start of a message failed, it counts as one")
	}
}
