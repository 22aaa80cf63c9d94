package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/ssetest"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/audit"
	"github.com/cityconnect/cityconnect/scripts/internal/client"
)

// entering is how many people sign in or open their screens at a time.
const entering = 32

// A person takes part, most with a screen, which is an open stream.
type person struct {
	*client.Client
	owner  int // as the audit names people: their number, or audit.Officials
	screen int // among those of the same owner
	ledger ssetest.Ledger
	stream *client.Stream
	behind atomic.Bool // was asked to read the list instead of the stream
	blind  bool        // has no screen at all
}

// People are everyone who takes part.
type people struct {
	residents, officials []*person
	streams              sync.WaitGroup
	failed               chan error
}

// enter signs everyone in. The names are of this run alone, so that nobody
// has notifications of an earlier one.
func enter(ctx context.Context, cfg *Config, base *client.Client) (*people, error) {
	run := uuid.NewString()[:8]
	p := &people{
		residents: make([]*person, cfg.Users), officials: make([]*person, cfg.Officials),
		failed: make(chan error, cfg.Users+cfg.Officials),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(entering)
	sign := func(into []*person, i int, role string, made *person) {
		g.Go(func() error {
			sub := fmt.Sprintf("load-%s-%s-%d", run, role, i)
			user, err := base.SignIn(ctx, fmt.Sprintf("Load %s %d", role, i), role, sub)
			if err != nil {
				return fmt.Errorf("sign in (the stack needs AUTH_MODE=dev): %w", err)
			}
			made.Client = user
			into[i] = made
			return nil
		})
	}
	for i := range p.residents {
		sign(p.residents, i, "resident", &person{owner: i, blind: i >= cfg.Subscribers})
	}
	for i := range p.officials {
		sign(p.officials, i, "official", &person{owner: audit.Officials, screen: i})
	}
	return p, g.Wait()
}

// watching returns everyone who has a screen.
func (p *people) watching() []*person {
	var all []*person
	for _, who := range slices.Concat(p.officials, p.residents) {
		if !who.blind {
			all = append(all, who)
		}
	}
	return all
}

// openScreens opens all screens and returns when each shows that it is ready.
// They stay open until stream ends; close waits for that.
func (p *people) openScreens(ctx, stream context.Context, a *audit.Audit) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(entering)
	for _, who := range p.watching() {
		g.Go(func() error { return p.open(ctx, stream, who, a) })
	}
	return g.Wait()
}

func (p *people) open(ctx, stream context.Context, who *person, a *audit.Audit) error {
	ready := make(chan struct{})
	var once sync.Once
	who.stream = &client.Stream{Client: who.Client, Path: "/notifications/stream", Handle: func(e ssetest.Event) {
		if e.Type == ssetest.Ready {
			once.Do(func() { close(ready) })
		}
		who.handle(e, a)
	}}
	p.streams.Go(func() {
		if err := who.stream.Run(stream); err != nil {
			p.failed <- err
		}
	})
	select {
	case <-ready:
		return nil
	case err := <-p.failed:
		return fmt.Errorf("open a screen: %w", err)
	case <-ctx.Done():
		return fmt.Errorf("open a screen: %w", context.Cause(ctx))
	}
}

// note is what the audit needs of a notification.
type note struct {
	ReportID      uuid.UUID `json:"report_id"`
	ReportVersion int64     `json:"report_version"`
	Type          string    `json:"type"`
	CreatedAt     time.Time `json:"created_at"`
}

func (who *person) handle(e ssetest.Event, a *audit.Audit) {
	seen := time.Now()
	who.ledger.Observe(e)
	switch e.Type {
	case ssetest.Reset:
		who.behind.Store(true)
	case ssetest.Notification:
		var n note
		if json.Unmarshal(e.Data, &n) == nil { // otherwise it counts as lost
			a.See(who.sight(n, seen))
		}
	}
}

// sight returns that the user's one screen showed n, whichever stream it came by.
func (who *person) sight(n note, seen time.Time) audit.Sight {
	return audit.Sight{
		Report: n.ReportID, Version: n.ReportVersion, Owner: who.owner, Screen: who.screen,
		Written: n.CreatedAt, Seen: seen,
	}
}

// close waits for the screens to go dark and tells which ended too early.
func (p *people) close() error {
	p.streams.Wait()
	close(p.failed)
	var all error
	for err := range p.failed {
		all = errors.Join(all, err)
	}
	return all
}
