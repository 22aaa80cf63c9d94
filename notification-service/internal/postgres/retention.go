package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/retention"
)

// A Retention says how long the data of this service are kept.
type Retention struct {
	Notifications retention.Period `env:"NOTIFICATIONS_RETENTION" envDefault:"365d"`
	ReadMarks     retention.Period `envDefault:"365d"`
	Audit         retention.Period `env:"AUDIT_RETENTION" envDefault:"730d"`
}

// Tasks returns what retention has to do.
func (r Retention) Tasks() []retention.Task {
	return []retention.Task{
		{Kind: "notifications", Keep: r.Notifications, Remove: removeNotifications},
		{Kind: "read_marks", Keep: r.ReadMarks, Remove: removeReaders},
		// The log is in the order of time: none but its oldest entries are read.
		retention.Removal("audit", r.Audit, `
			delete from operations_audit where id in (
			  select id from (select id, at from operations_audit order by id limit $2) oldest where at < now() - $1::interval)`),
		// An address that nobody has proven may be somebody else's. It stays while a code
		// waits to be typed. The consent about an anonymous report stays for devices.
		retention.Removal("unverified_addresses", retention.Period(email.UnverifiedFor), `
			with old as (
			  select id, stream_id from contacts
			  where state = 'unverified' and state_since < now() - $1::interval and coalesce(code_until, now()) <= now()
			  order by state_since limit $2 for update skip locked
			), digests_gone as (
			  delete from digests using old where digests.stream_id = old.stream_id
			), consents_gone as (
			  delete from mail_consents using old where mail_consents.stream_id = old.stream_id
			    and not exists (select from push_subscriptions p where p.stream_id = old.stream_id)
			)
			delete from contacts using old where contacts.id = old.id`),
		// The browser of a device that nothing was sent to for long may be gone, and
		// nothing would ever say so.
		retention.Removal("unused_devices", retention.Period(push.UnusedFor), `
			delete from push_subscriptions where id = any(array(
			  select id from push_subscriptions where coalesce(last_ok_at, created_at) < now() - $1::interval
			  order by coalesce(last_ok_at, created_at) limit $2 for update skip locked))`),
	}
}

// removeNotifications shortens streams from their beginning, so that the remaining
// numbers have no gap, and notes up to where: a cursor before it is answered with a
// reset, and removed notifications count as read.
//
// It finds the old ones by their ids, which are ordered by time, so that no
// other index has to be written with each notification. The place where to go
// on is the time in an id, in milliseconds.
func removeNotifications(ctx context.Context, tx pgx.Tx, keep time.Duration, after int64, limit int) (next, removed int64, err error) {
	ends := make(map[int64]int64) // the last number that goes, by stream
	var found int
	var id uuid.UUID
	var stream, seq int64
	err = pgpool.ForEach(ctx, tx, "find notifications", []any{&id, &stream, &seq}, func() error {
		found++
		ends[stream] = max(ends[stream], seq)
		return nil
	}, `
		select id, stream_id, seq from notifications
		where id >= $1 and id < $2 and created_at < now() - $3::interval
		order by id limit $4`, firstID(time.UnixMilli(after)), firstID(time.Now().Add(-keep)), keep, limit)
	if err != nil || found == 0 {
		return 0, 0, err
	}
	streams, numbers := make([]int64, 0, len(ends)), make([]int64, 0, len(ends))
	for stream, seq := range ends {
		streams, numbers = append(streams, stream), append(numbers, seq)
	}
	tag, err := tx.Exec(ctx, `
		delete from notifications n using unnest($1::bigint[], $2::bigint[]) as e (stream_id, seq)
		where n.stream_id = e.stream_id and n.seq <= e.seq`, streams, numbers)
	if err != nil {
		return 0, 0, fmt.Errorf("delete notifications: %w", err)
	}
	// Last, because the consumer waits for the row of a stream; and in the order
	// in which the consumer locks them.
	_, err = tx.Exec(ctx, `
		select from streams where id = any($1) order by name collate "C" for no key update`, streams)
	if err == nil {
		_, err = tx.Exec(ctx, `
			update streams s set removed_to = greatest(s.removed_to, e.seq)
			from unnest($1::bigint[], $2::bigint[]) as e (stream_id, seq)
			where s.id = e.stream_id`, streams, numbers)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("note what was removed: %w", err)
	}
	if found == limit {
		next = milliseconds(id)
	}
	return next, tag.RowsAffected(), nil
}

// milliseconds returns the time in an id.
func milliseconds(id uuid.UUID) int64 { return int64(binary.BigEndian.Uint64(id[:8]) >> 16) }

// removeReaders removes the marks of readers who have been away for long. When they come
// back, the notifications in the stream of all officials count as read. Their own empty
// stream is removed, too; it has another epoch when it starts again.
func removeReaders(ctx context.Context, tx pgx.Tx, keep time.Duration, after int64, limit int) (next, removed int64, err error) {
	window, err := pgpool.Collect(ctx, tx, "list streams", pgx.RowTo[int64], `select id from streams where id > $1 order by id limit $2`, after, limit)
	if err != nil || len(window) == 0 {
		return 0, 0, err
	}
	err = tx.QueryRow(ctx, `
		with gone as (
		  delete from read_marks where reader = any($1) and stream_id <> reader and seen_at < now() - $2::interval
		  returning reader, stream_id
		), reads as (
		  delete from notification_reads r using gone g where r.reader = g.reader and r.stream_id = g.stream_id
		)
		select count(*) from gone`, window, keep).Scan(&removed)
	if err != nil {
		return 0, 0, fmt.Errorf("delete read marks: %w", err)
	}
	// With its row locked nobody can add to a stream. Whether it is empty is for
	// a statement after that one to see.
	locked, err := pgpool.Collect(ctx, tx, "lock empty streams", pgx.RowTo[int64], `
		select id from streams s
		where id = any($1) and starts_with(name, 'user:')
		  and not exists (select from notifications where stream_id = s.id)
		  and not exists (select from read_marks where reader = s.id and seen_at >= now() - $2::interval)
		  and coalesce(adopted_at < now() - $3::interval, true)
		order by name collate "C" for update skip locked`, window, keep, adoptedLife)
	if err != nil {
		return 0, 0, err
	}
	if len(locked) > 0 {
		n, err := removeEmptyStreams(ctx, tx, locked, keep)
		if err != nil {
			return 0, 0, err
		}
		removed += n
	}
	if len(window) == limit {
		next = window[len(window)-1]
	}
	return next, removed, nil
}

// removeEmptyStreams removes those of the locked streams that have nothing, and
// what their readers marked elsewhere.
func removeEmptyStreams(ctx context.Context, tx pgx.Tx, locked []int64, keep time.Duration) (int64, error) {
	empty, err := pgpool.Collect(ctx, tx, "find empty streams", pgx.RowTo[int64], `
		select id from streams s where id = any($1)
		  and not exists (select from notifications where stream_id = s.id)
		  and not exists (select from read_marks where reader = s.id and seen_at >= now() - $2::interval)`, locked, keep)
	if err != nil {
		return 0, err
	}
	return removeAll(ctx, tx, "delete empty streams", empty,
		`delete from notification_reads where reader = any($1)`,
		`delete from follows where stream_id = any($1)`,
		`delete from read_marks where reader = any($1)`,
		`delete from streams where id = any($1)`)
}
