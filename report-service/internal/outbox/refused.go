package outbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Refusal is a pending row that the broker has refused, and what waits behind it: the
// later rows of its report, which go on once it is confirmed or has failed.
type Refusal struct {
	Message
	Behind      int64
	BehindSince *time.Time // when the oldest of them was written; nil for none
}

const (
	// refusedSearched bounds the refused rows among which the oldest are looked for.
	refusedSearched = 1000
	// behindSearched is among how many pending rows of a shard those behind a refused one
	// are counted, from the first refused one on: there is no index by report, which would
	// cost each message a write.
	behindSearched = 2000
)

// refusedSQL reads refused rows in the order of their index, like the relay: see
// relay.readSQL.
const refusedSQL = `
with refused as materialized (
  select * from (
    select ` + messageColumns + `, shard
    from outbox_messages where status = 'pending' and retry_count > 0 order by report_id, seq limit $2) d
  order by seq limit $1
), later as materialized (
  select m.report_id, m.seq, m.created_at
  from (select shard, min(seq) as seq from refused group by shard) s
  cross join lateral (
    select report_id, seq, created_at from outbox_messages
    where status = 'pending' and shard = s.shard and seq > s.seq order by seq limit $3) m
), behind as (
  select r.seq, count(*) as behind, min(l.created_at) as since
  from refused r join later l on l.report_id = r.report_id and l.seq > r.seq group by r.seq
)
select ` + messageColumns + `, coalesce(b.behind, 0), b.since
from refused left join behind b using (seq)
order by seq`

// Refused returns up to limit pending rows that were refused, oldest first.
func (s *Store) Refused(ctx context.Context, limit int) ([]Refusal, error) {
	return pgpool.Collect(ctx, s.pool, "list refused outbox messages", pgx.RowToStructByPos[Refusal], refusedSQL, limit, refusedSearched, behindSearched)
}
