package drive

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

// A person takes part, most with a screen.
type person struct {
	*client.Client
	owner  int          // as the ledger knows the person: a number, or city.Officials
	number int          // of the screen, among those of the same owner
	screen *city.Screen // nil is none
}

// People are everyone who takes part.
type people struct {
	residents, officials []*person
	subscribers          int // residents who have a screen
	screens              *city.Screens
}

// enter signs everyone in.
func enter(ctx context.Context, cfg *Config, base *client.Client) (*people, error) {
	p := &people{subscribers: cfg.Subscribers, screens: city.NewScreens()}
	residents, err := city.SignIn(ctx, base, "Load resident", "resident", cfg.Users)
	if err != nil {
		return nil, err
	}
	officials, err := city.SignIn(ctx, base, "Load official", "official", cfg.Officials)
	if err != nil {
		return nil, err
	}
	for i, user := range residents {
		p.residents = append(p.residents, &person{Client: user, owner: i})
	}
	for i, user := range officials {
		p.officials = append(p.officials, &person{Client: user, owner: city.Officials, number: i})
	}
	return p, nil
}

// openScreens opens all screens and returns when each shows that it is ready.
func (p *people) openScreens(ctx context.Context, l *city.Ledger) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(city.Entering)
	for _, who := range slices.Concat(p.officials, p.residents[:p.subscribers]) {
		g.Go(func() (err error) {
			who.screen, err = p.screens.Open(ctx, who.Client, func(n client.Notification) { l.See(who.sight(n, time.Now())) })
			return err
		})
	}
	return g.Wait()
}

// sight of a user is of the one screen, whichever of the user's streams it came by.
func (who *person) sight(n client.Notification, seen time.Time) city.Sight {
	return city.Sight{
		Report: n.ReportID, Version: n.ReportVersion, Owner: who.owner, Screen: who.number,
		Type: string(n.Type), Written: n.CreatedAt, Seen: seen,
	}
}

// sweepPage is how many notifications are read at a time.
const sweepPage = 100

// sweep reads the lists of those without a screen, and of those whose stream
// said so, as the page does.
func (p *people) sweep(ctx context.Context, l *city.Ledger) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(city.Entering)
	for _, who := range slices.Concat(p.officials, p.residents) {
		if who.screen == nil || who.screen.Count().Resets > 0 {
			g.Go(func() error { return who.read(ctx, l) })
		}
	}
	return g.Wait()
}

func (who *person) read(ctx context.Context, l *city.Ledger) error {
	for cursor := ""; ; {
		page, err := who.Notifications(ctx, cursor, sweepPage)
		if err != nil {
			return fmt.Errorf("read a list: %w", err)
		}
		for _, n := range page.Notifications {
			l.Find(who.sight(n, time.Time{}))
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}
