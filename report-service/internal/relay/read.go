package relay

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// pageSize is about how many rows are read at once. A page of this size is
	// read in a few milliseconds and keeps the broker busy for a hundred.
	pageSize = 2000
	// readTimeout ends a read from a database that does not answer.
	readTimeout = 10 * time.Second
)

// A question is what a page is asked for.
type question struct {
	number   int64          // counts the reads of a session
	leases   []shards.Lease // the shards to read
	floors   []int64        // per shard: rows up to here need no look
	underway []*row         // left out of the answer
	shut     []string
	perShard int
}

// A page is the answer: rows in order of seq within each shard, as of one
// snapshot. Because every read begins at the floor of its shard, and not
// behind what was read before, it cannot show a row and miss an earlier one
// of the same report that committed in between.
type page struct {
	question

	rows     []*row
	reach    []int64 // per claim: no row up to here was left for another page
	full     int     // shards that have more rows
	snapshot string
	unlisted uint32  // transactions that run and are too young for the snapshot
	delayed  []int16 // shards with rows that wait for another attempt
	err      error
}

// read answers q. A row that waits for its next attempt is left out until it
// is due, and so are the later rows of its report: they wait for it. It is a
// single statement, because a page must be of a single snapshot.
//
// Each shard is asked by itself: shard = any(…) order by seq would make the
// planner sort, or walk the published history. not in (select unnest(…)) is
// hashed once, also in a generic plan, which <> all(…) is not.
//
// A snapshot lists no transaction that began after the last one that ended; the
// age of its xmax tells how many those are.
const readSQL = `
	with head as materialized (
		select s::text as snapshot, age(pg_snapshot_xmax(s)::xid) as unlisted,
		       array(select distinct shard from outbox_messages where status = 'pending' and retry_count > 0) as delayed
		from pg_current_snapshot() s
	)
	select head.snapshot, head.unlisted, head.delayed, 0::smallint, 0::bigint, null::uuid, '', null::uuid, null::jsonb, null::jsonb, now(), 0
	from head
	union all
	select '', 0, null, s.shard, m.seq, m.id, m.routing_key, m.report_id, m.payload, m.headers, m.created_at, m.retry_count
	from unnest($1::smallint[], $2::bigint[]) as s(shard, floor)
	cross join lateral (
		select seq, id, routing_key, report_id, payload, headers, created_at, retry_count
		from outbox_messages o
		where status = 'pending' and shard = s.shard and seq > s.floor
		  and seq not in (select unnest($3::bigint[]))
		  and (retry_count = 0 or next_attempt_at <= now())
		  and case when cardinality((select delayed from head)) = 0 then true
		      else not exists (
				select from outbox_messages d
				where d.status = 'pending' and d.retry_count > 0
				  and d.report_id = o.report_id and d.seq < o.seq)
		      end
		  and (cardinality($4::text[]) = 0 or routing_key <> all($4::text[]))
		order by seq
		limit $5
	) m`

func (r *Relay) read(ctx context.Context, q question) page {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	p := page{question: q}
	defer func(began time.Time) { r.metrics.readSeconds.Observe(time.Since(began).Seconds()) }(time.Now())
	numbers := make([]int16, len(q.leases))
	for i, c := range q.leases {
		numbers[i] = c.Shard
	}
	except := make([]int64, len(q.underway))
	for i, row := range q.underway {
		except[i] = row.seq
	}
	rows, err := r.cfg.Pool.Query(ctx, readSQL, numbers, q.floors, except, q.shut, q.perShard)
	if err != nil {
		p.err = fmt.Errorf("read outbox: %w", err)
		return p
	}
	if err := p.scan(rows); err != nil {
		p.err = fmt.Errorf("read outbox: %w", err)
	}
	return p
}

// scan takes the rows of the answer; the one without an id carries what holds
// for the whole page.
func (p *page) scan(rows pgx.Rows) error {
	defer rows.Close()
	index := make(map[int16]int, len(p.leases))
	p.reach = make([]int64, len(p.leases))
	for i, c := range p.leases {
		index[c.Shard], p.reach[i] = i, math.MaxInt64
	}
	inShard := make([]int, len(p.leases))
	for rows.Next() {
		var one row
		var snapshot string
		var unlisted uint32
		var delayed []int16
		var id, report pgtype.UUID
		err := rows.Scan(&snapshot, &unlisted, &delayed, &one.Shard, &one.seq, &id, &one.key, &report,
			&one.payload, &one.headers, &one.created, &one.retries)
		if err != nil {
			return err
		}
		if !id.Valid {
			p.snapshot, p.unlisted, p.delayed = snapshot, unlisted, delayed
			continue
		}
		i := index[one.Shard]
		one.id, one.report, one.Epoch = id.Bytes, report.Bytes, p.leases[i].Epoch
		if inShard[i]++; inShard[i] == p.perShard {
			p.full++
			p.reach[i] = one.seq
		}
		p.rows = append(p.rows, &one)
	}
	return rows.Err()
}
