package relay

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
)

// maxReason is how much of a refusal is kept in last_error.
const maxReason = 500

// refusals are the rows of a batch that were refused, by column.
type refusals struct {
	ids     []uuid.UUID
	reasons []string
	delays  []time.Duration
	failed  []bool
}

// refuseSQL counts an attempt. Only the owner of the shard may: a replica that
// lost it must not fail a row that its successor is publishing.
const refuseSQL = `
	update outbox_messages m
	set retry_count = m.retry_count + 1, last_error = r.reason,
	    status = case when r.failed then 'failed' else 'pending' end,
	    next_attempt_at = case when r.failed then null else now() + r.delay end
	from unnest($1::uuid[], $2::text[], $3::interval[], $4::boolean[]) as r(id, reason, delay, failed)
	where m.id = any($1) and m.id = r.id and m.status <> 'published'
	  and exists (select from relay_shards s where s.shard = m.shard and s.owner = $5)`

func (r *refusals) add(v verdict, s Settings) {
	attempts := v.row.retries + 1
	reason := v.refusal
	if len(reason) > maxReason {
		// The cut may fall within a character, which Postgres would not take.
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	r.ids = append(r.ids, v.row.id)
	r.reasons = append(r.reasons, reason)
	r.delays = append(r.delays, backoff(attempts, s))
	r.failed = append(r.failed, attempts >= s.MaxAttempts)
}

// backoff doubles with each attempt, within ±20 %.
func backoff(attempts int, s Settings) time.Duration {
	delay := s.RetryMin
	for range attempts - 1 {
		delay = min(2*delay, s.RetryMax)
	}
	return time.Duration(float64(delay) * (0.8 + 0.4*rand.Float64()))
}
