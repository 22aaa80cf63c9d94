package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// Streams are the numbered streams of notifications, and what their readers have
// read of them.
type Streams struct {
	pool   *pgxpool.Pool
	erased *Erased
}

// View returns the heads of reader's streams and how many notifications are
// unread. A new stream or reader is written first, so that there is a
// position to resume from.
func (s *Streams) View(ctx context.Context, reader notification.Reader) (notification.View, error) {
	for range 2 {
		view, seenToday, err := s.view(ctx, reader)
		switch {
		case err != nil:
			return view, err
		case len(view.Heads) == len(reader.Streams()):
			if !seenToday {
				s.see(ctx, reader)
			}
			return view, nil
		}
		if err := s.enrol(ctx, reader); err != nil {
			return notification.View{}, err
		}
	}
	return notification.View{}, errStreamsRemoved
}

var errStreamsRemoved = fault.New(fault.Unavailable, "the streams are being removed")

// view omits the heads of new streams, and of all streams for a new reader. It
// also reports whether the reader is known to have been here today.
//
// The numbers of a stream have no gaps, so the unread are those above the
// reader's mark, corrected by the single marks. Removed notifications count as
// read, and their corrections were removed with them.
func (s *Streams) view(ctx context.Context, reader notification.Reader) (view notification.View, seenToday bool, err error) {
	var head notification.Head
	var unread int64
	var muted, seen bool
	seenToday = true
	err = pgpool.ForEach(ctx, s.pool, "view streams", []any{&head.Stream, &head.Epoch, &head.Seq, &unread, &muted, &seen}, func() error {
		view.Heads = append(view.Heads, head)
		view.Unread += unread
		view.OnlyOwn = view.OnlyOwn || muted
		seenToday = seenToday && seen
		return nil
	}, `
		select s.name, s.epoch, s.last_seq,
		  case when m.muted then 0 else greatest(s.last_seq - greatest(m.seq, s.removed_to), 0) + (
		    select count(*) filter (where not r.read and r.seq <= m.seq)
		         - count(*) filter (where r.read and r.seq > m.seq)
		    from notification_reads r
		    where r.reader = m.reader and r.stream_id = s.id) end,
		  m.muted, m.seen_at > now() - interval '1 day'
		from unnest($2::text[]) with ordinality as want (name, place)
		join streams s on s.name = want.name
		join streams me on me.name = $1
		join read_marks m on m.reader = me.id and m.stream_id = s.id
		order by want.place`,
		reader.Own(), reader.Streams())
	if err != nil {
		return notification.View{}, false, err
	}
	return view, seenToday, nil
}

// see notes that reader is here, for retention, which removes readers who have been
// away for long. If it fails, the next request notes it.
func (s *Streams) see(ctx context.Context, reader notification.Reader) {
	_, _ = s.pool.Exec(ctx, `
		update read_marks set seen_at = now()
		where reader = (select id from streams where name = $1) and seen_at < now() - interval '1 day'`, reader.Own())
}

// SetOnlyOwn sets whether reader is shown their own stream only, and returns the view
// after that. Notifications of the other streams count as read up to the moment in
// which reader turns it off again.
func (s *Streams) SetOnlyOwn(ctx context.Context, reader notification.Reader, only bool) (notification.View, error) {
	if _, err := s.View(ctx, reader); err != nil { // the reader may be new
		return notification.View{}, err
	}
	err := pgpool.Exec(ctx, s.pool, "mute streams", `
		update read_marks m set muted = $2, seq = case when m.muted and not $2 then s.last_seq else m.seq end
		from streams s, streams me
		where me.name = $1 and m.reader = me.id and s.id = m.stream_id and s.id <> me.id`, reader.Own(), only)
	if err != nil {
		return notification.View{}, err
	}
	return s.View(ctx, reader)
}

// enrol writes the streams of reader and the marks in them. Notifications that a shared
// stream has before reader's first visit count as read.
func (s *Streams) enrol(ctx context.Context, reader notification.Reader) error {
	sorted := slices.Sorted(slices.Values(reader.Streams())) // the order in which all transactions lock
	_, hashes := s.erased.hashes(string(reader.Own()))
	batch := &pgx.Batch{}
	batch.Queue(`
		insert into streams (name)
		select name from unnest($1::text[]) with ordinality as want (name, place)
		where not exists (select from erasures where user_mac = any($2))
		order by place
		on conflict do nothing`, sorted, hashes)
	batch.Queue(`
		insert into read_marks (reader, stream_id, seq)
		select me.id, s.id, case when s.id = me.id then 0 else s.last_seq end
		from streams me, streams s
		where me.name = $1 and s.name = any($2::text[])
		on conflict do nothing`, reader.Own(), sorted)
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("enrol reader: %w", err)
	}
	return nil
}

// Heads returns the heads of the named streams. Unknown streams are omitted.
func (s *Streams) Heads(ctx context.Context, names []notification.Stream) ([]notification.Head, error) {
	return pgpool.Collect(ctx, s.pool, "read heads of streams", pgx.RowToStructByPos[notification.Head], `
		select name, epoch, last_seq from streams where name = any($1::text[])`, names)
}

// Since returns the notifications that follow each of the heads in its stream, in
// order, at most limit of each.
func (s *Streams) Since(ctx context.Context, heads []notification.Head, limit int) ([]notification.Notification, error) {
	names, after := make([]notification.Stream, len(heads)), make([]int64, len(heads))
	for i, h := range heads {
		names[i], after[i] = h.Stream, h.Seq
	}
	return pgpool.Collect(ctx, s.pool, "read notifications", pgx.RowToStructByPos[notification.Notification], `
		select s.name, s.epoch, n.seq, n.id, n.data, n.created_at
		from unnest($1::text[], $2::bigint[]) as want (name, after)
		join streams s on s.name = want.name
		cross join lateral (
		  select seq, id, data, created_at from notifications
		  where stream_id = s.id and seq > want.after
		  order by seq limit $3) n
		order by s.name, n.seq`,
		names, after, limit)
}
