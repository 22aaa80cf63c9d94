package ledger

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// recordAfter is how long an outcome waits for others, to be committed with
	// them.
	recordAfter = 20 * time.Millisecond
	// maxUnrecorded bounds the outcomes that wait for the database. With more,
	// nothing is sent.
	maxUnrecorded = 1000
	// drainTimeout is how long a worker that stops waits for the requests in
	// flight. Those that it cuts are sent again, by another.
	drainTimeout = 5 * time.Second
	// endTimeout bounds what a worker writes down at its end.
	endTimeout = 3 * time.Second
	// databaseTimeout bounds one exchange with the database.
	databaseTimeout = 10 * time.Second
	// minRetry and maxRetry are the pauses after the database failed.
	minRetry, maxRetry = 100 * time.Millisecond, 5 * time.Second
)

// A Config is what an operator may set.
type Config struct {
	Concurrency  int           // requests at once of this worker, over all lanes
	Timeout      time.Duration // of an attempt
	Schedule     Schedule
	DisableAfter time.Duration // without a success
}

// A Dispatcher sends the due deliveries of one channel. Any number of workers
// may have one: each lane is leased by one of them.
//
// One goroutine, that of Run, has all state. It starts three kinds of others
// and waits for their results: attempts, at most Concurrency of them; a pass, which
// leases lanes and claims due deliveries there, one at a time; a record, which commits
// outcomes, one at a time.
type Dispatcher struct {
	config  Config
	channel Channel
	store   Store
	owner   uuid.UUID
	session *Session // nil in a worker whose lanes are free when the leases end
	metrics *metrics
	dead    crowd.Gate // of the log, where targets are people
	log     zerolog.Logger

	wakeUp chan struct{} // holds a value after Wake
	mu     sync.Mutex
	named  map[string]struct{} // lanes that Wake named

	attempts    chan attempt
	unthrottled chan *lane // whose rate lets it send again
	passes      chan pass
	records     chan record

	// The fields below are Run's alone.
	lanes      map[string]*lane    // that this worker leases
	candidates map[string]struct{} // lanes to lease: something is due there
	ready      []*lane             // that have something to send, the longest waiting first
	busy       int                 // attempts in flight
	suspects   int                 // of those, in lanes that are failing
	contended  bool                // since the last renewal lanes waited for one another
	held       bool                // the session
	changes    int                 // of the session that were taken into account

	passing   bool
	passAfter time.Time // no pass before
	passRetry backoff.Backoff
	scanAt    time.Time // when a pass looks for due lanes
	renewAt   time.Time // when a pass renews the leases

	unrecorded []attempt
	recording  bool
	recordAt   time.Time // no record before
}

// New returns a Dispatcher. Run starts it.
func New(cfg Config, c Channel, s Store, reg prometheus.Registerer, log zerolog.Logger) *Dispatcher {
	return &Dispatcher{
		config: cfg, channel: c, store: s, owner: uuid.New(), metrics: newMetrics(reg, c),
		log:    log.With().Str("channel", c.Name()).Logger(),
		wakeUp: make(chan struct{}, 1), named: make(map[string]struct{}),
		attempts: make(chan attempt, cfg.Concurrency), unthrottled: make(chan *lane),
		passes: make(chan pass, 1), records: make(chan record, 1),
		lanes: make(map[string]*lane), candidates: make(map[string]struct{}),
		passRetry: backoff.Backoff{First: minRetry, Max: maxRetry},
	}
}

// Wake says that deliveries of the lanes were committed. It never blocks, and
// may be called at any time. Without it they are found half a second later.
func (d *Dispatcher) Wake(lanes []string) {
	d.mu.Lock()
	for _, name := range lanes {
		d.named[name] = struct{}{}
	}
	d.mu.Unlock()
	select {
	case d.wakeUp <- struct{}{}:
	default: // it is awake
	}
}

// Run sends until ctx ends, then waits for deliveries in flight, records their
// outcomes and gives its lanes back.
func (d *Dispatcher) Run(ctx context.Context) error {
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	timer := time.NewTimer(0)
	defer timer.Stop()
	d.scanAt, d.renewAt = time.Now(), time.Now().Add(renewEvery)
	for ctx.Err() == nil {
		now := time.Now()
		d.checkSession(now)
		d.send(work, now)
		d.startPass(work, now)
		d.startRecord(work, now)
		timer.Reset(d.pause(now))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-d.wakeUp:
			d.takeWoken()
		case l := <-d.unthrottled:
			d.enqueue(l)
		case a := <-d.attempts:
			d.answered(a)
		case p := <-d.passes:
			d.takePass(p, time.Now())
		case r := <-d.records:
			d.recorded(r)
		}
	}
	d.drain(work, cut)
	return nil
}

// checkSession ends what the leases allow soon after the session is lost: others may take
// the lanes over. Once there is another session, the leases are renewed first.
func (d *Dispatcher) checkSession(now time.Time) {
	held, changes := d.session.state()
	if d.held = held; changes == d.changes {
		return
	}
	d.changes = changes
	until := now
	if !held {
		until = now.Add(sessionGrace)
	} else {
		d.renewAt = now
	}
	for _, l := range d.lanes {
		if l.until.After(until) {
			l.until = until
		}
	}
}

// pause returns for how long nothing is due by time.
func (d *Dispatcher) pause(now time.Time) time.Duration {
	next := now.Add(scanEvery)
	if !d.passing {
		next = d.scanAt
		if d.passAfter.After(next) {
			next = d.passAfter
		}
	}
	if !d.recording && len(d.unrecorded) > 0 && d.recordAt.Before(next) {
		next = d.recordAt
	}
	return max(0, next.Sub(now))
}

func (d *Dispatcher) takeWoken() {
	d.mu.Lock()
	named := d.named
	d.named = make(map[string]struct{})
	d.mu.Unlock()
	for name := range named {
		d.due(name)
	}
}

// due notes that something is due in a lane.
func (d *Dispatcher) due(name string) {
	if l, ok := d.lanes[name]; ok {
		l.more = true
	} else {
		d.candidates[name] = struct{}{}
	}
}

// enqueue gives a lane its turn, if it has something to send.
func (d *Dispatcher) enqueue(l *lane) {
	if !l.ready && len(l.queue) > 0 {
		l.ready = true
		d.ready = append(d.ready, l)
	}
}

// An attempt is one delivery on its way, and then the answer.
type attempt struct {
	lane    *lane
	d       claimed
	suspect bool // its lane was failing
	answer  Answer
}

// send starts attempts while there is room, one of each lane in turn. Lanes
// that are failing have half of the room together, so that many targets which
// do not answer leave enough to the others.
func (d *Dispatcher) send(work context.Context, now time.Time) {
	var later []*lane
	for len(d.ready) > 0 && d.busy < d.config.Concurrency && len(d.unrecorded) < maxUnrecorded {
		l := d.ready[0]
		d.ready = d.ready[1:]
		if !l.maySend(now) {
			l.ready = false // an answer, a pass or its pace brings it back
			continue
		}
		a := attempt{lane: l, suspect: l.failures > 0}
		if a.suspect && d.suspects >= max(1, d.config.Concurrency/2) {
			later = append(later, l)
			continue
		}
		a.d = l.take(now)
		d.busy++
		if a.suspect {
			d.suspects++
		}
		send := l.is.Send
		go func() {
			ctx, cancel := context.WithTimeout(work, d.config.Timeout)
			defer cancel()
			a.answer = try(ctx, send, a.d)
			d.attempts <- a // holds as many as there are
		}()
		if l.rate > 0 {
			time.AfterFunc(l.next.Sub(now), func() {
				select {
				case d.unthrottled <- l:
				case <-work.Done():
				}
			})
		}
		d.ready = append(d.ready, l)
	}
	d.contended = d.contended || len(d.ready) > 0 && d.busy >= d.config.Concurrency
	d.ready = append(d.ready, later...)
	d.metrics.inFlight.Set(float64(d.busy))
}

// try sends c, unless its time is over.
func try(ctx context.Context, send func(context.Context, *Delivery) Answer, c claimed) Answer {
	start := time.Now()
	if start.Sub(c.at) >= c.Remaining {
		return Answer{Verdict: Expired, Class: "expired", At: start}
	}
	answer := send(ctx, &c.Delivery)
	answer.At, answer.Duration = start, time.Since(start)
	return answer
}

// answered takes the answer of an attempt.
func (d *Dispatcher) answered(a attempt) {
	now := time.Now()
	d.busy--
	if a.suspect {
		d.suspects--
	}
	wasOpen := a.lane.isOpen()
	a.lane.answered(a.answer, now, d.config.DisableAfter)
	switch isOpen := a.lane.isOpen(); {
	case isOpen && !wasOpen:
		d.log.Warn().Str("lane", a.lane.name).Str("class", a.answer.Class).
			Msg("the target fails, circuit opened: its deliveries wait until a probe succeeds")
	case wasOpen && !isOpen:
		d.log.Info().Str("lane", a.lane.name).Msg("the target answers again, circuit closed")
	}
	if a.lane.disable || now.Before(a.lane.openUntil) {
		a.lane.drop()
	}
	d.enqueue(a.lane)
	if len(d.unrecorded) == 0 {
		d.recordAt = now.Add(recordAfter)
	}
	d.unrecorded = append(d.unrecorded, a)
}

// A record is a transaction that writes outcomes down.
type record struct {
	attempts []attempt
	outcomes []Outcome
	lanes    []LaneState
	err      error // it was not written down
}

// startRecord records the answers. It is repeated until the database has them: until
// then the deliveries are in hand, and are not sent again.
func (d *Dispatcher) startRecord(work context.Context, now time.Time) {
	if d.recording || len(d.unrecorded) == 0 || now.Before(d.recordAt) {
		return
	}
	d.recording = true
	r := d.newRecord(now)
	go func() {
		retry := backoff.Backoff{First: minRetry, Max: maxRetry}
		for {
			err := d.commit(work, r)
			if err == nil {
				break
			}
			d.log.Warn().Str("error", pgpool.LogText(err)).Msg("recording outcomes failed, will retry")
			if r.err = backoff.Sleep(work, retry.Next()); r.err != nil {
				break // the worker ends
			}
		}
		d.records <- r
	}()
}

func (d *Dispatcher) newRecord(now time.Time) record {
	r := record{attempts: d.unrecorded}
	d.unrecorded = nil
	for _, a := range r.attempts {
		r.outcomes = append(r.outcomes, d.config.Schedule.outcome(&a.d.Delivery, a.answer, now.Sub(a.d.at)))
		if a.lane.dirty {
			r.lanes = append(r.lanes, a.lane.state(now))
		}
	}
	return r
}

func (d *Dispatcher) commit(ctx context.Context, r record) error {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	return d.store.Record(ctx, d.channel.Name(), d.owner, r.outcomes, r.lanes)
}

// recorded lets go of deliveries whose outcome is in the database.
func (d *Dispatcher) recorded(r record) {
	d.recording = false
	for i, a := range r.attempts {
		delete(a.lane.inHand, a.d.ID)
		a.lane.more = true // what waited for this one, or for a place
		d.metrics.observe(a.d.Target, r.outcomes[i])
		if r.outcomes[i].State == Dead {
			d.logDead(a)
		}
	}
}

// logDead logs that a delivery is given up; those to people once there are many.
func (d *Dispatcher) logDead(a attempt) {
	if !d.channel.Personal() {
		d.log.Warn().Str("lane", a.lane.name).Str("message_id", a.d.MessageID).Str("trace_id", a.d.TraceID).Int("attempts", a.d.Attempts).
			Str("class", a.answer.Class).Int("status", a.answer.Status).
			Msg("delivery is given up, an operator may send it again")
		return
	}
	if n := d.dead.Add(a.answer.Class, a.d.Target); n > 0 {
		d.log.Warn().Int("deliveries", n).Str("class", a.answer.Class).Msg("deliveries to many people are given up")
	}
}

// drain sends nothing more, waits for deliveries in flight, records their outcomes,
// and gives the lanes back.
func (d *Dispatcher) drain(work context.Context, cut context.CancelFunc) {
	for _, l := range d.lanes {
		l.drop()
	}
	grace := time.AfterFunc(drainTimeout, cut)
	defer grace.Stop()
	for d.busy > 0 {
		d.answered(<-d.attempts)
	}
	grace.Reset(endTimeout) // for the database
	if d.recording {
		if r := <-d.records; r.err != nil {
			d.unrecorded = append(r.attempts, d.unrecorded...)
		}
	}
	if d.passing {
		d.takePass(<-d.passes, time.Now()) // it may have leased more
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), endTimeout)
	defer cancel()
	if n := len(d.unrecorded); n > 0 {
		if err := d.commit(ctx, d.newRecord(time.Now())); err != nil {
			d.log.Warn().Str("error", pgpool.LogText(err)).Int("deliveries", n).
				Msg("recording the last outcomes failed, they will be sent again")
		}
	}
	if err := d.store.Release(ctx, d.channel.Name(), d.owner, slices.Collect(maps.Keys(d.lanes))); err != nil {
		d.log.Warn().Str("error", pgpool.LogText(err)).Msg("releasing lanes failed, others take them when the leases end")
	}
}
