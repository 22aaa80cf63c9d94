package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// tickInterval is how often the time since the last confirm is checked.
	tickInterval = 250 * time.Millisecond
	// drainTimeout bounds the wait for confirms, and then for results, at the end.
	drainTimeout = 4 * time.Second
)

// Errors that end a session.
var (
	errConfirmTimeout = errors.New("the broker confirmed nothing in time")
	errNewChannel     = errors.New("the broker refused messages on this channel")
)

// A session publishes over one connection. All of its state belongs to the
// goroutine of run; slow work (reading, recording, waiting for confirms)
// happens in other goroutines, which send it their results.
type session struct {
	cfg       Config
	exchange  string
	conn      *amqp.Connection
	publisher *rabbit.Publisher
	leases    *shards.Leases
	reader    *reader
	schedule  readSchedule
	watermark *watermark
	rows      *rowTracker
	breaker   *breaker
	results   *resultWriter
	metrics   *metrics
	log       zerolog.Logger

	readResults   chan readResult
	confirmations chan confirmation // never full: there is room for the window
	probeResults  chan probeResult
	trigger       <-chan struct{} // holds a value when rows were committed
	blocking      <-chan amqp.Blocking

	background   sync.WaitGroup // reads and probes
	reading      bool
	probing      bool
	isBlocked    bool // the broker accepts no messages
	reconnecting bool // publish nothing more, end once all confirms have arrived
	progress     time.Time
}

// run publishes until ctx ends or the session is broken. Reads and probes have
// workCtx, which ends later.
func (s *session) run(ctx, workCtx context.Context) error {
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	// Reading comes before publishing, so that the database reads the next rows
	// while the broker handles these.
	for ctx.Err() == nil {
		now := time.Now()
		if s.mayRead() {
			s.startProbe(workCtx, now)
			s.startRead(workCtx, now)
		}
		more, err := s.publish(now)
		if err != nil {
			return err
		}
		if s.reconnecting && s.rows.count[inFlight] == 0 {
			return errNewChannel
		}
		if err := s.await(ctx, more, ticker.C); err != nil {
			return err
		}
	}
	return nil
}

// await handles one event. If there is more to publish, it does not wait.
func (s *session) await(ctx context.Context, more bool, tick <-chan time.Time) error {
	var readDue <-chan time.Time
	if s.mayRead() {
		timer := time.NewTimer(time.Until(s.schedule.due()))
		defer timer.Stop()
		readDue = timer.C
	}
	var goOn chan struct{}
	if more {
		goOn = closed
	}
	select {
	case <-ctx.Done():
	case c := <-s.confirmations:
		// Confirms arrive in groups. Handling a whole group first makes room in
		// the window.
		s.onConfirm(c)
		for range len(s.confirmations) {
			s.onConfirm(<-s.confirmations)
		}
	case res := <-s.readResults:
		return s.accept(res)
	case batch := <-s.results.out:
		s.onRecorded(batch)
	case p := <-s.probeResults:
		s.onProbe(p)
	case <-s.leases.Changed():
		s.rows.releaseUnowned()
		s.schedule.next = time.Now() // the previous owner of new shards may have left pending rows
	case <-s.trigger:
		s.schedule.triggered = true
	case b, ok := <-s.blocking:
		if !ok {
			s.blocking = nil // the connection has ended
			break
		}
		s.onBlocking(b.Active)
	case now := <-tick:
		if s.confirmOverdue(now) {
			return errConfirmTimeout
		}
	case <-readDue:
	case <-goOn:
	}
	return nil
}

// onBlocking handles that the broker stops accepting messages, or accepts them
// again.
func (s *session) onBlocking(active bool) {
	s.isBlocked, s.progress = active, time.Now() // the time for a confirm starts again
}

// confirmOverdue reports whether the broker has owed a confirm for too long. A
// broker that blocks publishers is silent, but not broken.
func (s *session) confirmOverdue(now time.Time) bool {
	return s.rows.count[inFlight] > 0 && !s.isBlocked && now.Sub(s.progress) > s.cfg.ConfirmTimeout
}

// closed is always ready.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// drain waits for outstanding confirms; nothing new is published. Finish has
// its own time for the results.
func (s *session) drain() {
	timeout := time.NewTimer(drainTimeout)
	defer timeout.Stop()
	for s.rows.count[inFlight] > 0 {
		select {
		case c := <-s.confirmations:
			s.onConfirm(c)
		case batch := <-s.results.out:
			s.onRecorded(batch)
		case <-timeout.C:
			return
		}
	}
}

// finish waits until all published rows are recorded. There is no limit,
// because the database may be away. Once stopping is closed the limit is
// drainTimeout, after which finish calls stopResults. The publisher is closed
// already, so that no more confirms arrive.
func (s *session) finish(stopping <-chan struct{}, stopResults context.CancelFunc) {
	for len(s.confirmations) > 0 {
		s.onConfirm(<-s.confirmations)
	}
	close(s.results.in)
	select {
	case <-s.results.done:
	case <-stopping:
		timer := time.AfterFunc(drainTimeout, stopResults)
		<-s.results.done
		timer.Stop()
	}
	s.background.Wait()
	s.rows.close()
}
