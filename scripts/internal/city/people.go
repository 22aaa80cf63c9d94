// Package city has what every program that plays a city shares: people who sign in,
// their screens, which are open live streams, and the ledger of what has to be on
// them. The demo, the load test, the fault injection, the screenshots and the
// benchmarks are scenarios on it.
package city

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// Entering is how many people sign in or open their screens at a time.
const Entering = 32

// SignIn signs n people in with a role. They are called name and their number, and
// are users of this run alone, so that nobody has notifications of an earlier one.
func SignIn(ctx context.Context, city *client.Client, name, role string, n int) ([]*client.Client, error) {
	people := make([]*client.Client, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(Entering)
	for i := range people {
		g.Go(func() (err error) {
			if people[i], err = city.SignIn(ctx, fmt.Sprint(name, " ", i), role, ""); err != nil {
				return fmt.Errorf("sign in %s %d (the stack needs AUTH_MODE=dev): %w", name, i, err)
			}
			return nil
		})
	}
	return people, g.Wait()
}

// A Screen is a live stream of a user.
type Screen struct {
	stream *client.Stream
	ledger ssetest.Ledger
}

// Count returns what the numbers of the stream say: what was left out, came again,
// or went backwards.
func (s *Screen) Count() ssetest.Count { return s.ledger.Count() }

// Connects returns how often the stream was opened.
func (s *Screen) Connects() int64 { return s.stream.Connects() }

// Screens are those of all people. They reconnect as browsers do.
type Screens struct {
	mu      sync.Mutex
	screens []*Screen
	stops   []func()
	running sync.WaitGroup
	lost    chan error
}

// maxDark is how many screens may go dark before anybody looks.
const maxDark = 1 << 14

// NewScreens returns none.
func NewScreens() *Screens { return &Screens{lost: make(chan error, maxDark)} }

// Open opens the screen of a user and returns once it shows that it is ready. It
// stays open, also beyond ctx, until Close. show is called with every notification,
// one after the other.
func (s *Screens) Open(ctx context.Context, user *client.Client, show func(client.Notification)) (*Screen, error) {
	ready := make(chan struct{})
	opened := sync.OnceFunc(func() { close(ready) })
	screen := &Screen{}
	screen.stream = &client.Stream{Client: user, Path: "/notifications/stream", Raw: func(e sse.Event) {
		screen.ledger.Observe(e)
		switch e.Type {
		case sse.Ready:
			opened()
		case sse.Notification:
			var n client.Notification
			if err := json.Unmarshal(e.Data, &n); err != nil {
				s.lost <- fmt.Errorf("a notification is not JSON: %w", err)
				return
			}
			show(n)
		}
	}}
	stream, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	s.screens, s.stops = append(s.screens, screen), append(s.stops, stop)
	s.mu.Unlock()
	s.running.Go(func() {
		if err := screen.stream.Run(stream); err != nil {
			s.lost <- fmt.Errorf("a screen went lost: %w", err)
		}
	})
	select {
	case <-ready:
		return screen, nil
	case err := <-s.lost:
		return nil, err
	case <-ctx.Done():
		return nil, fmt.Errorf("a screen does not get ready: %w", context.Cause(ctx))
	}
}

// Lost has an error for each screen whose stream the server has ended for good.
func (s *Screens) Lost() <-chan error { return s.lost }

// Count adds up what the numbers of all streams say.
func (s *Screens) Count() (sum ssetest.Count) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, screen := range s.screens {
		c := screen.Count()
		sum.Received += c.Received
		sum.Missing += c.Missing
		sum.Doubled += c.Doubled
		sum.OutOfOrder += c.OutOfOrder
		sum.Resets += c.Resets
	}
	return sum
}

// Close ends all streams and waits for that. It returns why those have ended that
// did so before.
func (s *Screens) Close() (err error) {
	s.mu.Lock()
	for _, stop := range s.stops {
		stop()
	}
	s.stops = nil
	s.mu.Unlock()
	s.running.Wait()
	for {
		select {
		case dark := <-s.lost:
			err = errors.Join(err, dark)
		default:
			return err
		}
	}
}
