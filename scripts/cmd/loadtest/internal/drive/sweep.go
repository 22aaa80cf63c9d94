package drive

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/audit"
	"github.com/cityconnect/cityconnect/scripts/internal/client"
)

// sweepPage is how many notifications are read at a time.
const sweepPage = 100

// sweep reads the lists of those without a screen, and of those whose stream asked
// them to do so, as the page does.
func (p *people) sweep(ctx context.Context, a *audit.Audit) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(entering)
	for _, who := range slices.Concat(p.officials, p.residents) {
		if who.blind || who.behind.Load() {
			g.Go(func() error { return who.read(ctx, a) })
		}
	}
	return g.Wait()
}

func (who *person) read(ctx context.Context, a *audit.Audit) error {
	for cursor := ""; ; {
		page, err := who.Notifications(ctx, cursor, sweepPage)
		if err != nil {
			return fmt.Errorf("read a list: %w", err)
		}
		for _, n := range page.Notifications {
			a.Find(who.sight(noteOf(n), time.Time{}))
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}

func noteOf(n client.Notification) note {
	return note{ReportID: n.ReportID, ReportVersion: n.ReportVersion, Type: n.Type, CreatedAt: n.CreatedAt}
}
