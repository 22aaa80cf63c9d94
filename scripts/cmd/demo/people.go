package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/cityconnect/cityconnect/platform/ssetest"
	"github.com/cityconnect/cityconnect/scripts/internal/client"
)

// A person takes part with a screen, which is an open stream.
type person struct {
	*client.Client
	name    string
	privacy string // of the reports that the person files
	ledger  ssetest.Ledger
}

// role returns what name signs in as.
func role(name string) string {
	if name == officialName {
		return "official"
	}
	return "resident"
}

// The cast. Fresh users each time: the demo may run again and again.
const (
	officialName  = "Olga"
	anonymousName = "Cleo"
)

var residentNames = []string{"Ana", "Ben", anonymousName}

// A cast is everyone with their screens.
type cast struct {
	people  map[string]*person
	streams sync.WaitGroup
	failed  chan error // a screen that went dark for good, or the mailbox
}

// enter signs everyone in and opens their screens. The streams end with ctx;
// close waits for them.
func enter(ctx context.Context, city *client.Client, a *audit) (*cast, error) {
	names := append([]string{officialName}, residentNames...)
	c := &cast{people: make(map[string]*person), failed: make(chan error, len(names)+1)}
	for _, name := range names {
		user, err := city.SignIn(ctx, name, role(name), "")
		if err != nil {
			return nil, signInError(err)
		}
		p := &person{Client: user, name: name, privacy: "public"}
		if name == anonymousName {
			p.privacy = "anonymous"
		}
		c.people[name] = p
		if err := c.open(ctx, p, a); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// open opens p's screen and returns when it shows that it is ready.
func (c *cast) open(ctx context.Context, p *person, a *audit) error {
	ready := make(chan struct{})
	var once sync.Once
	s := &client.Stream{Client: p.Client, Path: "/notifications/stream", Handle: func(e ssetest.Event) {
		p.ledger.Observe(e)
		switch e.Type {
		case ssetest.Ready:
			once.Do(func() { close(ready) })
		case ssetest.Notification:
			var n client.Notification
			if err := json.Unmarshal(e.Data, &n); err == nil {
				a.arrive(sight{p.name, n.Type, n.ReportID, n.ReportVersion})
			}
		}
	}}
	c.streams.Go(func() {
		if err := s.Run(ctx); err != nil {
			c.failed <- fmt.Errorf("%s's screen: %w", p.name, err)
		}
	})
	select {
	case <-ready:
		return nil
	case err := <-c.failed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s's screen did not get ready: %w", p.name, context.Cause(ctx))
	}
}

// unruly returns what the numbers of the streams say beyond the audit: a
// number that was left out, came again, or went backwards.
func (c *cast) unruly() (missing, doubled, disordered int64) {
	for _, p := range c.people {
		count := p.ledger.Count()
		missing += count.Missing
		doubled += count.Doubled
		disordered += count.OutOfOrder
	}
	return missing, doubled, disordered
}
