package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// writers is how many commits run at the same time at most.
const writers = 8

// write commits rows at an even rate, each in a transaction of its own.
func write(ctx context.Context, r *relay.Relay, pool *pgxpool.Pool, rate int, d time.Duration) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	began := time.Now()
	for n := range int(d.Seconds() * float64(rate)) {
		<-time.After(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate))))
		g.Go(func() error {
			report := uuid.New()
			shard := shards.Of(report)
			_, err := pool.Exec(ctx, `
				insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, headers)
				values ($1, 'report.vote.received', jsonb_build_object('report_id', $2::uuid), $2::uuid, 1, $3, '{}')`,
				uuid.Must(uuid.NewV7()), report, shard)
			if err != nil {
				return err
			}
			r.Wake(shards.Set(0).Add(shard))
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
