package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wagslane/go-rabbitmq"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// prefetch is how many messages each contestant holds at the most.
const prefetch = 10

// wagslane empties a queue with consumers of wagslane/go-rabbitmq on one connection, as
// ours are. Each handles a message by itself, and as many at once as it holds, which is
// its best. It requeues at once what fails.
func (b *bench) wagslane(ctx context.Context, brokerURL string, l load) (result, error) {
	pool, err := pgpool.Open(ctx, b.database, "wagslane")
	if err != nil {
		return result{}, err
	}
	defer pool.Close()
	watch := &stopwatch{left: l.good(), failing: make(map[string]time.Time), finished: make(chan struct{})}
	handle := func(d rabbitmq.Delivery) rabbitmq.Action {
		if watch.fails(d.MessageId) {
			return rabbitmq.NackRequeue
		}
		_, err := pool.Exec(ctx, `
			insert into processed_messages (consumer, message_id) values ('bench', $1) on conflict do nothing`, d.MessageId)
		if err != nil {
			return rabbitmq.NackRequeue
		}
		watch.done(d.MessageId)
		return rabbitmq.Ack
	}
	conn, err := rabbitmq.NewConn(brokerURL, rabbitmq.WithConnectionOptionsLogger(silent{}))
	if err != nil {
		return result{}, fmt.Errorf("open broker: %w", err)
	}
	defer conn.Close()
	var consumers []*rabbitmq.Consumer
	ended := make(chan error, l.workers)
	for range l.workers {
		consumer, err := rabbitmq.NewConsumer(conn, b.queue(), rabbitmq.WithConsumerOptionsQueueNoDeclare,
			rabbitmq.WithConsumerOptionsConcurrency(prefetch), rabbitmq.WithConsumerOptionsQOSPrefetch(prefetch),
			rabbitmq.WithConsumerOptionsLogger(silent{}))
		if err != nil {
			return result{}, fmt.Errorf("make consumer: %w", err)
		}
		consumers = append(consumers, consumer)
		go func() { ended <- consumer.Run(handle) }()
	}
	select {
	case err := <-ended:
		return result{}, fmt.Errorf("consume: %w", err)
	case <-watch.finished:
	case <-ctx.Done():
	}
	err = ctx.Err()
	for _, consumer := range consumers {
		consumer.Close()
		err = errors.Join(err, <-ended)
	}
	return watch.result(), err
}

// A silent logger has no readers.
type silent struct{}

func (silent) Fatalf(string, ...any) {}
func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Infof(string, ...any)  {}
func (silent) Debugf(string, ...any) {}

// A stopwatch takes the time as that of notification-service/bench/consumer does.
type stopwatch struct {
	mu          sync.Mutex
	left        int // good messages that are not done
	began, last time.Time
	stall       time.Duration
	failing     map[string]time.Time // since when
	finished    chan struct{}
}

// fails reports whether a message is in its first second, if it is one that
// fails. The first of all starts the watch.
func (s *stopwatch) fails(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.began.IsZero() {
		s.began, s.last = now, now
	}
	if !strings.HasSuffix(id, failingSuffix) {
		return false
	}
	if _, known := s.failing[id]; !known {
		s.failing[id] = now
	}
	return now.Sub(s.failing[id]) < time.Second
}

// done counts a message if it is a good one.
func (s *stopwatch) done(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(id, failingSuffix) || s.left == 0 {
		return
	}
	now := time.Now()
	s.stall = max(s.stall, now.Sub(s.last))
	s.last = now
	if s.left--; s.left == 0 {
		close(s.finished)
	}
}

func (s *stopwatch) result() result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return result{Seconds: s.last.Sub(s.began).Seconds(), StallMS: float64(s.stall.Microseconds()) / 1000}
}
