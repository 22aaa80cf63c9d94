package main

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// An action makes change number k over connection conn.
type action func(ctx context.Context, conn, k int) error

// closedLoop has every connection make one change after the other, and
// returns how many were made in time.
func closedLoop(ctx context.Context, conns int, length time.Duration, do action) (int64, error) {
	var made atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	end := time.Now().Add(length)
	for conn := range conns {
		g.Go(func() error {
			for k := 0; ; k++ {
				if err := do(ctx, conn, k); err != nil {
					return err
				}
				if time.Now().After(end) {
					return nil
				}
				made.Add(1)
			}
		})
	}
	err := g.Wait()
	return made.Load(), err
}

// openLoop makes changes when they are due, rate of them in a second, and
// returns the p99 in milliseconds, counted from then.
func openLoop(ctx context.Context, conns int, length time.Duration, rate float64, do action) (float64, error) {
	start := time.Now()
	total := int64(rate * length.Seconds())
	var next atomic.Int64
	took := make([]time.Duration, total)
	g, ctx := errgroup.WithContext(ctx)
	for conn := range conns {
		g.Go(func() error {
			for k := 0; ; k++ {
				n := next.Add(1) - 1
				if n >= total {
					return nil
				}
				due := start.Add(time.Duration(float64(n) / rate * float64(time.Second)))
				<-time.After(time.Until(due))
				if err := do(ctx, conn, k); err != nil {
					return err
				}
				took[n] = time.Since(due)
			}
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	return stats.Percentile(took, 99).Seconds() * 1000, nil
}
