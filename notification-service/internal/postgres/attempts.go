package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// attemptsRead is of how many deliveries to an endpoint, the latest ones, Attempts reads
// the attempts: no column that has their time has an index, which would cost each attempt
// a write. An endpoint with more of them has a shorter past.
const attemptsRead = 20_000

// attemptsSQL counts the attempts of $1 since $2, in steps of $3. What was tried before
// the first of the deliveries that are read is left out: some of it is not read.
const attemptsSQL = `
with latest as materialized (
  select id, created_at from deliveries where channel = 'webhook' and target = $1 order by id desc limit $4
), bounds as (
  select case when count(*) = $4 then greatest($2::timestamptz, date_bin($3, min(created_at), $2) + $3) else $2 end as since from latest
)
select b.since, date_bin($3, a.at, $2) as at, count(a.n) filter (where a.class = '2xx'), count(a.n) filter (where a.class <> '2xx'),
  percentile_disc(0.95) within group (order by a.duration_ms) filter (where a.class = '2xx')
from bounds b left join (latest d join delivery_attempts a on a.delivery_id = d.id) on a.at >= b.since
group by 1, 2 order by 2`

// Attempts returns how the attempts to send something to an endpoint went since a time, in
// steps. It begins later than asked if more deliveries were made since than are read.
func (s *Deliveries) Attempts(ctx context.Context, endpoint uuid.UUID, since time.Time, step time.Duration) (webhook.Past, error) {
	past := webhook.Past{Since: since, Step: step}
	var at *time.Time
	var p95 *int64
	var succeeded, failed int64
	err := pgpool.ForEach(ctx, s.pool, "count attempts", []any{&past.Since, &at, &succeeded, &failed, &p95}, func() error {
		if at == nil { // there was no attempt
			return nil
		}
		point := webhook.Point{At: *at, Succeeded: succeeded, Failed: failed}
		if p95 != nil {
			point.P95 = new(time.Duration(*p95) * time.Millisecond)
		}
		past.Points = append(past.Points, point)
		return nil
	}, attemptsSQL, freshPlan, endpoint.String(), since, step, attemptsRead)
	return past, err
}
