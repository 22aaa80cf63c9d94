// Package upkeep removes what nobody needs any more, and mends what no
// single transaction could.
package upkeep

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/failure"
)

const (
	every   = 5 * time.Minute
	timeout = 30 * time.Second
)

// A Store does a bounded piece of the work at a time.
type Store interface {
	// Upkeep does the next piece of each task, and tells whether more is left.
	Upkeep(ctx context.Context) (more bool, err error)
}

// Run keeps the store tidy until ctx ends. Any number of replicas may: a
// piece of work that is done already is no work.
func Run(ctx context.Context, store Store, log zerolog.Logger) error {
	for {
		more, err := once(ctx, store)
		if err != nil && ctx.Err() == nil {
			log.Warn().Str("reason", failure.Describe(err)).Msg("upkeep does not get on")
		}
		if more && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every/2 + rand.N(every)): // replicas take turns by chance
		}
	}
}

func once(ctx context.Context, store Store) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return store.Upkeep(ctx)
}
