// Package wait waits for a time, or for something to happen.
package wait

import (
	"context"
	"fmt"
	"time"
)

// For waits so long, but not beyond ctx.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// interval is the time between two questions of Until, which cost who is asked.
const interval = 50 * time.Millisecond

// Until asks until the answer is yes or an error, but no longer than patience. What
// says what is waited for.
func Until(ctx context.Context, patience time.Duration, what string, ok func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if done, err := ok(ctx); done || err != nil {
			return err
		}
		if For(ctx, interval) != nil {
			return fmt.Errorf("not within %s: %s", patience, what)
		}
	}
}
