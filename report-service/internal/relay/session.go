package relay

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

const (
	// burst is how many rows are published before the session looks up.
	burst = 64
	// tickEvery is how often deadlines are looked at.
	tickEvery = 250 * time.Millisecond
	// readGap separates the beginnings of two reads while rows trickle in: it
	// bounds the reads per second, at a delay that nobody notices. When reads
	// take long the machine is busy, and up to maxReadGap passes between them:
	// there is better use for its time than ever smaller pages.
	readGap    = 4 * time.Millisecond
	maxReadGap = 20 * time.Millisecond
	// drainTimeout bounds the wait for confirms, and then for marks, at the end.
	drainTimeout = 4 * time.Second
)

// What ends a session.
var (
	errConfirmTimeout = errors.New("the broker confirmed nothing in time")
	errFreshChannel   = errors.New("the broker refused messages on this channel")
)

// A session publishes over one connection. All of its state belongs to the
// goroutine of run; what takes time (reading, marking, waiting for confirms)
// happens in others that send it what came out.
type session struct {
	relay     *Relay
	conn      *amqp.Connection
	publisher *rabbit.Publisher
	marker    *marker
	horizon   *horizon

	tracked map[int64]*row      // by seq: read, and not yet finished
	queue   []*row              // of these: to be published
	flying  []*row              // of these: waiting for the confirm, in publishing order
	waiting int                 // of these: waiting for their mark
	held    map[uuid.UUID]int64 // reports that wait, until a page above that number

	settled chan settlement // never full: there is room for the window
	pages   chan page
	probes  chan probe
	blocked <-chan amqp.Blocking

	background sync.WaitGroup // readers and probes
	reads      int64          // questions asked
	reading    bool
	probing    bool
	woken      bool // since the last question
	more       bool // the last page was full
	perShard   int
	lastRead   time.Time
	gap        time.Duration // until the next read
	nextRead   time.Time
	poll       time.Duration
	isBlocked  bool
	renewing   bool // publish nothing more, begin a new session once all is settled
	progress   time.Time
}

// A settlement is the end of one publish.
type settlement struct {
	row     *row
	outcome rabbit.Outcome
}

// untilWritten holds a report until its refusal is written.
const untilWritten = int64(math.MaxInt64)

// session is what the supervisor calls with each live connection.
func (r *Relay) session(ctx context.Context, conn *amqp.Connection) error {
	for _, exchange := range []string{r.cfg.Topology.Exchange(), r.cfg.Topology.DeadLetterExchange()} {
		if err := rabbit.DeclareExchange(conn, exchange, "topic"); err != nil {
			return err
		}
	}
	publisher, err := rabbit.NewPublisher(conn, r.cfg.Window)
	if err != nil {
		return err
	}
	r.coordinator.SetConnected(true)
	defer r.coordinator.SetConnected(false)

	// What is published is marked even after ctx ended, but not for ever. The
	// order below is that of a row: no more of them are read, the confirms come,
	// the publisher calls what has none lost, and the marks are written.
	hard, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	s := r.newSession(hard, conn, publisher)
	work, stop := context.WithCancel(hard)
	// Also while the rest drains: requests may still be committing.
	r.talking.Go(func() { r.passWakes(work, conn) })
	err = s.run(ctx, work)
	if err == nil {
		s.drain()
	}
	stop()
	publisher.Close()
	s.finish(giveUp)
	return err
}

func (r *Relay) newSession(hard context.Context, conn *amqp.Connection, publisher *rabbit.Publisher) *session {
	now := time.Now()
	room := r.cfg.Window + markBatch // see mayPublish
	return &session{
		relay: r, conn: conn, publisher: publisher,
		marker:  r.startMarker(hard, room),
		horizon: newHorizon(now),
		tracked: make(map[int64]*row),
		held:    make(map[uuid.UUID]int64),
		settled: make(chan settlement, r.cfg.Window),
		pages:   make(chan page, 1),
		probes:  make(chan probe, 1),
		blocked: conn.NotifyBlocked(make(chan amqp.Blocking, 1)),
		gap:     readGap,
		poll:    r.cfg.PollMin, nextRead: now, progress: now,
	}
}

// run publishes until ctx ends or the session is broken. Reads and probes go on
// under work.
func (s *session) run(ctx, work context.Context) error {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	// Reading comes before publishing, so that the database works on the next
	// page while the broker is busy with this one.
	for ctx.Err() == nil {
		now := time.Now()
		s.ask(work, now)
		more, err := s.publish(now)
		if err != nil {
			return err
		}
		if s.renewing && len(s.flying) == 0 {
			return errFreshChannel
		}
		if err := s.await(ctx, more, ticker.C); err != nil {
			return err
		}
	}
	return nil
}

// await takes in one thing that happened. If there is more to publish, it does
// not wait for it.
func (s *session) await(ctx context.Context, more bool, tick <-chan time.Time) error {
	var timer <-chan time.Time
	if s.mayRead() {
		poll := time.NewTimer(time.Until(s.due()))
		defer poll.Stop()
		timer = poll.C
	}
	var goOn chan struct{}
	if more {
		goOn = closed
	}
	select {
	case <-ctx.Done():
	case o := <-s.settled:
		// Confirms come in bunches, and room in the window for a bunch is worth
		// one look at what else to do.
		s.settle(o)
		for range len(s.settled) {
			s.settle(<-s.settled)
		}
	case p := <-s.pages:
		return s.take(p)
	case m := <-s.marker.out:
		s.marked(m)
	case p := <-s.probes:
		s.probed(p)
	case <-s.relay.leases.Changed():
		s.dropForeign()
		s.nextRead = time.Now() // whoever owned the new shards may have left rows behind
	case <-s.relay.wake:
		s.woken = true
	case b, ok := <-s.blocked:
		s.block(b, ok)
	case <-timer:
	case now := <-tick:
		return s.checkDeadlines(now)
	case <-goOn:
	}
	return nil
}

// closed is always ready.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (s *session) block(b amqp.Blocking, ok bool) {
	if !ok {
		s.blocked = nil // the connection ends
		return
	}
	s.isBlocked = b.Active
	s.progress = time.Now() // a confirm may take its time from here
}

// checkDeadlines ends a session whose broker is silent. While it blocks us,
// silence is what it promised.
func (s *session) checkDeadlines(now time.Time) error {
	if len(s.flying) > 0 && !s.isBlocked && now.Sub(s.progress) > s.relay.cfg.ConfirmTimeout {
		return errConfirmTimeout
	}
	return nil
}

// drain waits for what is under way; nothing new is published. The marks have
// their own time, in finish.
func (s *session) drain() {
	timeout := time.NewTimer(drainTimeout)
	defer timeout.Stop()
	for len(s.flying) > 0 {
		select {
		case o := <-s.settled:
			s.settle(o)
		case m := <-s.marker.out:
			s.marked(m)
		case <-timeout.C:
			return
		}
	}
}

// finish settles the rest and waits until all that was published is marked.
// It is called when the publisher is closed: no more answers come.
func (s *session) finish(giveUp context.CancelFunc) {
	for len(s.settled) > 0 {
		s.settle(<-s.settled)
	}
	close(s.marker.in)
	select {
	case <-s.marker.done:
	case <-s.relay.stopping:
		timer := time.AfterFunc(drainTimeout, giveUp)
		<-s.marker.done
		timer.Stop()
	}
	s.background.Wait()
	// What is left was lost or never sent. Counted as busy, it would keep its
	// shard from ever being handed over.
	for _, r := range s.tracked {
		s.relay.leases.End(r.Lease)
	}
}
