package relay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// readSize is about how many rows are read at once. Reading them takes a
	// few milliseconds, and publishing them a hundred.
	readSize = 2000
	// readTimeout ends a read from a database that does not answer.
	readTimeout = 10 * time.Second
)

// A readRequest is the request for a read.
type readRequest struct {
	number     int64          // counts the reads of a session
	leases     []shards.Lease // the shards to read
	above      []int64        // per lease: its watermark
	inProgress []*row         // left out of the result
	openKeys   []string       // routing keys left out, because their circuit is open
	perShard   int            // how many rows of each shard at most
}

// A readResult has the rows, in order of seq within each shard, as of one
// snapshot. Because every read starts at the watermark of its shard, and not
// behind what was read before, it cannot contain a row and miss an earlier one
// of the same report that committed in between.
type readResult struct {
	readRequest

	rows       []*row
	completeTo []int64 // per lease: no row up to here was left for another read
	fullShards int     // shards that have more rows
	snapshot   string
	unlisted   uint32  // transactions that run and are too young for the snapshot
	standbys   bool    // commits wait for a standby
	delayed    []int16 // shards with rows that wait for another attempt
	err        error
}

// A reader reads the outbox. It writes nothing.
type reader struct {
	pool    *pgxpool.Pool
	keys    *event.Keyring      // seals the reporters
	seconds prometheus.Observer // of each read
}

// headersSQL takes the headers of the contract from those of a row, with a
// third less to allocate than reading the object here. A row without a recipient is
// for whoever filed its report, and for nobody if they have been erased.
const headersSQL = `m.headers->>'` + event.TraceHeader + `', m.headers->>'` + event.RecipientHeader + `',
	case when not m.headers ? '` + event.RecipientHeader + `'
	     then coalesce((select reporter_id from reporters p where p.report_id = m.report_id), '') end`

// seal seals the reporter as the recipient of a row without one.
func (r *reader) seal(one *row, reporter pgtype.Text) {
	if reporter.Valid {
		one.recipient = pgtype.Text{String: r.keys.Seal(one.report, reporter.String), Valid: true}
	}
}

// readSQL is a single statement, because a read must be of a single snapshot. A
// row that waits for its next attempt is left out until it is due, and so are
// the later rows of its report: they wait for it. Only while the circuit of its
// routing key is open they do not: its queue may be missing for days, and
// the other queues never receive it.
//
// Each shard is read by itself: shard = any(…) order by seq would make the
// planner sort, or walk the published history. not in (select unnest(…)) is
// hashed once, also in a generic plan, which <> all(…) is not.
//
// The rows with an attempt are ordered by report_id, as only the index of these
// rows is. Otherwise the planner may take the index of all pending rows, and
// scan the rows that were published since the last vacuum.
//
// A snapshot does not list transactions that began after the last one that
// ended; the age of its xmax is their number.
const readSQL = `
	with head as materialized (
		select s::text as snapshot, age(pg_snapshot_xmax(s)::xid) as unlisted,
		       array(select distinct shard from (
				select shard from outbox_messages where status = 'pending' and retry_count > 0 order by report_id
		       ) d) as delayed
		from pg_current_snapshot() s
	)
	select head.snapshot, head.unlisted, current_setting('synchronous_standby_names') <> '', head.delayed, 0::smallint, 0::bigint, null::uuid, '', null::uuid, null::jsonb, null, null, null, now(), 0
	from head
	union all
	select '', 0, false, null, s.shard, m.seq, m.id, m.routing_key, m.report_id, m.payload, ` + headersSQL + `, m.created_at, m.retry_count
	from unnest($1::smallint[], $2::bigint[]) as s(shard, watermark)
	cross join lateral (
		select seq, id, routing_key, report_id, payload, headers, created_at, retry_count
		from outbox_messages o
		where status = 'pending' and shard = s.shard and seq > s.watermark
		  and seq not in (select unnest($3::bigint[]))
		  and (retry_count = 0 or next_attempt_at <= now())
		  and case when cardinality((select delayed from head)) = 0 then true
		      else not exists (
				select from outbox_messages d
				where d.status = 'pending' and d.retry_count > 0
				  and d.report_id = o.report_id and d.seq < o.seq
				  and (cardinality($4::text[]) = 0 or d.routing_key <> all($4::text[])))
		      end
		  and (cardinality($4::text[]) = 0 or routing_key <> all($4::text[]))
		order by seq
		limit $5
	) m`

func (r *reader) read(ctx context.Context, req readRequest) readResult {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := time.Now()
	defer func() { r.seconds.Observe(time.Since(began).Seconds()) }()
	numbers := make([]int16, len(req.leases))
	for i, lease := range req.leases {
		numbers[i] = lease.Shard
	}
	except := make([]int64, len(req.inProgress))
	for i, row := range req.inProgress {
		except[i] = row.seq
	}
	res := readResult{readRequest: req}
	rows, err := r.pool.Query(ctx, readSQL, numbers, req.above, except, req.openKeys, req.perShard)
	if err == nil {
		err = res.scan(rows, r.seal)
	}
	if err == nil && res.standbys && len(res.rows) > 0 {
		// A row may be visible before a standby has it. Published, it would
		// announce a change that is lost after a failover.
		err = pgpool.Barrier(ctx, r.pool)
	}
	if err != nil {
		res.err = fmt.Errorf("read outbox: %w", err)
	}
	return res
}

// scan reads the rows of the answer; the one without an id has the values for
// the whole read.
func (res *readResult) scan(rows pgx.Rows, seal func(*row, pgtype.Text)) error {
	defer rows.Close()
	index := make(map[int16]int, len(res.leases))
	res.completeTo = make([]int64, len(res.leases))
	for i, lease := range res.leases {
		index[lease.Shard], res.completeTo[i] = i, math.MaxInt64
	}
	inShard := make([]int, len(res.leases))
	for rows.Next() {
		var one row
		var snapshot string
		var unlisted uint32
		var standbys bool
		var delayed []int16
		var shard int16
		var id, report pgtype.UUID
		var reporter pgtype.Text
		err := rows.Scan(&snapshot, &unlisted, &standbys, &delayed, &shard, &one.seq, &id, &one.key, &report,
			&one.payload, &one.trace, &one.recipient, &reporter, &one.created, &one.retries)
		if err != nil {
			return err
		}
		if !id.Valid {
			res.snapshot, res.unlisted, res.standbys, res.delayed = snapshot, unlisted, standbys, delayed
			continue
		}
		i := index[shard]
		one.id, one.report, one.lease, one.read = id.Bytes, report.Bytes, res.leases[i], res.number
		seal(&one, reporter)
		if inShard[i]++; inShard[i] == res.perShard {
			res.fullShards++
			res.completeTo[i] = one.seq
		}
		res.rows = append(res.rows, &one)
	}
	return rows.Err()
}

// oldest returns the oldest pending row with a routing key in the shards of
// leases, or nil. It may be waiting for its next attempt: any other row would
// overtake it.
func (r *reader) oldest(ctx context.Context, key string, leases []shards.Lease) (*row, error) {
	numbers := make([]int16, len(leases))
	byShard := make(map[int16]shards.Lease, len(leases))
	for i, lease := range leases {
		numbers[i], byShard[lease.Shard] = lease.Shard, lease
	}
	one := row{key: key}
	var shard int16
	var reporter pgtype.Text
	err := r.pool.QueryRow(ctx, `
		select m.shard, m.seq, m.id, m.report_id, m.payload, `+headersSQL+`, m.created_at, m.retry_count
		from unnest($1::smallint[]) as s(shard)
		cross join lateral (
			select * from outbox_messages
			where status = 'pending' and shard = s.shard and routing_key = $2
			order by seq limit 1
		) m
		order by m.seq limit 1`, numbers, key).
		Scan(&shard, &one.seq, &one.id, &one.report, &one.payload, &one.trace, &one.recipient, &reporter, &one.created, &one.retries)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the oldest row of a routing key: %w", err)
	}
	if err := pgpool.Barrier(ctx, r.pool); err != nil { // see read
		return nil, err
	}
	r.seal(&one, reporter)
	one.lease = byShard[shard]
	return &one, nil
}
