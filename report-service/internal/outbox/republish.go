package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// republishRows is how many messages are made pending in one transaction.
	republishRows = 500
	// consumersKnow is how long consumers recognise a message, less a day.
	// Older messages are not published again: they would take effect twice.
	consumersKnow = 29 * 24 * time.Hour
)

// A Window selects messages by the time when they were published: from Since
// on, and before Until. Without Until it ends now.
type Window struct{ Since, Until time.Time }

// firstPublished is the header of a row that has when its message was first published. It is
// for the message's story alone: the relay sends headers by name.
const firstPublished = "first-published"

// toTheEnd returns a statement that makes the rows that selectSQL finds pending again.
// It inserts them again, because the relay reads in the order of seq, which must rise in
// the order of publishing.
func toTheEnd(selectSQL string) string { return toTheEndAnd(selectSQL, "") }

// toTheEndAnd is toTheEnd with another statement on put, the rows that are pending again.
func toTheEndAnd(selectSQL, besides string) string {
	return `
	with found as materialized (` + selectSQL + `), taken as (
		delete from outbox_messages where id in (select id from found) and status = 'published'
		returning id, routing_key, payload, created_at, published_at, seq, report_id, report_version, shard, headers
	), put as (
		insert into outbox_messages (id, routing_key, payload, created_at, report_id, report_version, shard, headers)
		select id, routing_key, payload, created_at, report_id, report_version, shard,
		  headers || jsonb_build_object('` + firstPublished + `', coalesce(headers ->> '` + firstPublished + `', published_at::text))
		from taken order by published_at, seq
		returning id, shard, routing_key
	)` + besides + `
	select (select count(*) from found), array(select id from put), array(select distinct shard from put)`
}

var oldestSQL = toTheEnd(`
	select id from outbox_messages
	where status = 'published' and published_at >= $1 and published_at < $2
	order by published_at, seq limit $3`)

var latestSQL = toTheEnd(`
	select id from outbox_messages
	where status = 'published' and published_at >= now() - $1::interval and published_at < $2
	order by published_at desc, seq desc limit $3`)

var chosenSQL = toTheEndAnd(`
	select id from outbox_messages
	where id = any($1) and status = 'published' and published_at >= now() - $2::interval`, `, audited as (
	insert into outbox_audit (actor, action, message_id, routing_key, reason)
	select $3, 'republish', id, routing_key, $4 from put
)`)

// Republish makes the messages of a window pending again, behind all pending
// ones, in the same order and under the same ids, as far as they are kept. It
// is for consumers that lost messages: the notifications database was restored,
// or a queue was deleted. Consumers that still know a message drop it by its
// id, so Republish may be repeated, also after it broke off.
//
// After each batch it calls tell with the number of messages done so far, and
// with the total.
func (s *Store) Republish(ctx context.Context, w Window, tell func(done, total int64)) error {
	var total int64
	// The end is fixed, so that messages are not republished again while this
	// runs.
	err := s.pool.QueryRow(ctx, `
		with ends as (
			select greatest($1, now() - $3::interval) as since, least(coalesce($2, now()), now()) as until
		)
		select since, until, (
			select count(*) from outbox_messages where status = 'published' and published_at >= since and published_at < until)
		from ends`, w.Since, pgpool.OrNull(w.Until), consumersKnow).Scan(&w.Since, &w.Until, &total)
	if err != nil {
		return fmt.Errorf("count what was published: %w", err)
	}
	for done := int64(0); ; {
		found, put, err := s.putBack(ctx, oldestSQL, w.Since, w.Until, republishRows)
		if err != nil {
			return err
		}
		if found == 0 { // found rows that did not change were changed by another process
			return nil
		}
		done += int64(len(put))
		tell(done, max(done, total))
	}
}

// RepublishLatest makes up to limit messages that were published before a time pending
// again, behind all pending ones, and returns their ids: the latest of them, in the same
// order and under the same ids. More is false if there were none.
func (s *Store) RepublishLatest(ctx context.Context, before time.Time, limit int) (ids []uuid.UUID, more bool, err error) {
	found, put, err := s.putBack(ctx, latestSQL, consumersKnow, before, limit)
	return put, found > 0, err
}

// Republished is what became of messages that were chosen to be published again.
type Republished struct {
	Pending     int64 // again
	Unpublished int64 // not published since they were last pending
	Gone        int64 // no longer kept, or older than consumers remember
}

// RepublishChosen makes the published ones of the messages pending again, as Republish
// does, and audits that.
func (s *Store) RepublishChosen(ctx context.Context, actor string, ids []uuid.UUID, reason string) (done Republished, err error) {
	ids = slices.Compact(slices.SortedFunc(slices.Values(ids), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }))
	_, put, err := s.putBack(ctx, chosenSQL, ids, consumersKnow, actor, reason)
	if err != nil {
		return Republished{}, err
	}
	done.Pending = int64(len(put))
	done.Unpublished, err = pgpool.Value[int64](ctx, s.pool, "count unpublished messages", `
		select count(*) from outbox_messages where id = any($1) and not id = any($2) and status <> 'published'`, ids, put)
	if err != nil {
		return Republished{}, err
	}
	done.Gone = int64(len(ids)) - done.Pending - done.Unpublished
	return done, nil
}

// AuditClosing keeps that an operator lets a group wait no longer for messages; it is a
// reconciliation.Audit. The kind of a message that is no longer kept is unknown.
func AuditClosing(ctx context.Context, tx pgx.Tx, c reconciliation.Closing) error {
	return pgpool.Exec(ctx, tx, "write audit", `
		insert into outbox_audit (actor, action, message_id, routing_key, reason)
		select $1, 'close', one.id, coalesce(m.routing_key, ''), $3
		from unnest($2::uuid[]) as one (id) left join outbox_messages m on m.id = one.id`, c.Actor, c.Messages, c.Reason)
}

// putBack executes a statement of toTheEnd, and wakes the relay.
func (s *Store) putBack(ctx context.Context, sql string, args ...any) (found int64, put []uuid.UUID, err error) {
	var numbers []int16
	if err := s.pool.QueryRow(ctx, sql, args...).Scan(&found, &put, &numbers); err != nil {
		return 0, nil, fmt.Errorf("put messages back: %w", err)
	}
	var woken shards.Set
	for _, shard := range numbers {
		woken = woken.Add(shard)
	}
	s.wake(woken)
	return found, put, nil
}

// Pending returns how many of the messages are pending.
func (s *Store) Pending(ctx context.Context, ids []uuid.UUID) (n int, err error) {
	return pgpool.Value[int](ctx, s.pool, "count pending messages", `select count(*) from outbox_messages where id = any($1) and status = 'pending'`, ids)
}
