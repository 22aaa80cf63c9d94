package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// List returns the notifications of reader before cursor, newest first; all of
// them when cursor is nil. The page has everything that its view counts and
// nothing that came later.
func (s *Streams) List(ctx context.Context, reader notification.Reader, cursor notification.Cursor, unread bool, limit int) (notification.Page, error) {
	view, err := s.View(ctx, reader)
	if err != nil {
		return notification.Page{}, err
	}
	if err := checkCursor(view, cursor); err != nil {
		return notification.Page{}, err
	}
	before := make([]int64, len(view.Heads)) // the numbers below which the page lies
	for i, h := range view.Heads {
		before[i] = h.Seq + 1
		if cursor != nil {
			before[i] = min(before[i], cursor[i].Seq)
		}
	}
	items, err := s.list(ctx, reader, before, unread, limit+1) // one more shows whether there is a next page
	if err != nil {
		return notification.Page{}, err
	}
	page := notification.Page{Items: items, View: view}
	if len(items) <= limit {
		return page, nil
	}
	page.Items, page.Next = items[:limit], view.Cursor()
	for i := range page.Next { // the next page lies below the lowest number of each stream
		page.Next[i].Seq = before[i]
		for _, item := range page.Items {
			if item.Stream == view.Heads[i].Stream {
				page.Next[i].Seq = min(page.Next[i].Seq, item.Seq)
			}
		}
	}
	return page, nil
}

// checkCursor refuses a cursor that is not of the streams in view.
func checkCursor(view notification.View, cursor notification.Cursor) error {
	if cursor != nil && len(cursor) != len(view.Heads) {
		return notification.ErrCursor
	}
	for i, p := range cursor {
		if p.Epoch != view.Heads[i].Epoch {
			return notification.ErrCursor
		}
	}
	return nil
}

// list merges the streams by time, and never against the numbers of one of them:
// the page ends at a number in each, and all above it must be on the page. A
// transaction that began later may have got the lower number, so that the time
// alone would leave one out.
func (s *Streams) list(ctx context.Context, reader notification.Reader, before []int64, unread bool, limit int) ([]notification.Item, error) {
	return pgpool.Collect(ctx, s.pool, "list notifications", pgx.RowToStructByPos[notification.Item], `
		select s.name, s.epoch, n.seq, n.id, n.data, n.created_at, n.read
		from unnest($2::text[], $3::bigint[]) as want (name, before)
		join streams s on s.name = want.name
		join streams me on me.name = $1
		join read_marks m on m.reader = me.id and m.stream_id = s.id and not m.muted
		cross join lateral (
		  select n.seq, n.id, n.data, n.created_at, coalesce(r.read, n.seq <= m.seq) as read
		  from notifications n
		  left join notification_reads r on r.reader = me.id and r.stream_id = n.stream_id and r.seq = n.seq
		  where n.stream_id = s.id and n.seq < want.before
		    and not ($4 and coalesce(r.read, n.seq <= m.seq))
		  order by n.seq desc limit $5) n
		order by min(n.created_at) over (partition by s.id order by n.seq desc) desc, s.name, n.seq desc limit $5`,
		reader.Own(), reader.Streams(), before, unread, limit)
}

// Mark sets whether reader has read the notification, and returns it as it is
// now. It returns notification.ErrNotFound for one of another reader.
func (s *Streams) Mark(ctx context.Context, reader notification.Reader, id uuid.UUID, read bool) (notification.Item, error) {
	if _, err := s.View(ctx, reader); err != nil { // the reader may be new
		return notification.Item{}, err
	}
	item, err := pgpool.One(ctx, s.pool, "mark notification", notification.ErrNotFound, pgx.RowToStructByPos[notification.Item], `
		with n as (
		  select s.name, s.epoch, n.stream_id, n.seq, n.id, n.data, n.created_at
		  from notifications n join streams s on s.id = n.stream_id
		  where n.id = $2 and s.name = any($3::text[])
		), marked as (
		  insert into notification_reads (reader, stream_id, seq, read)
		  select me.id, n.stream_id, n.seq, $4 from n, streams me where me.name = $1
		  on conflict (reader, stream_id, seq) do update set read = excluded.read
		)
		select name, epoch, seq, id, data, created_at, $4::boolean from n`,
		reader.Own(), id, reader.Streams(), read)
	if pgpool.Constraint(err) == "notification_reads_stream_id_seq_fkey" { // it was removed in this very moment
		err = notification.ErrNotFound
	}
	return item, err
}

// MarkAll marks everything up to cursor as read, or everything there is when
// cursor is nil, and returns the view after that.
func (s *Streams) MarkAll(ctx context.Context, reader notification.Reader, cursor notification.Cursor) (notification.View, error) {
	view, err := s.View(ctx, reader)
	if err != nil {
		return notification.View{}, err
	}
	if err := checkCursor(view, cursor); err != nil {
		return notification.View{}, err
	}
	upTo := make([]int64, len(view.Heads))
	for i, h := range view.Heads {
		upTo[i] = h.Seq
		if cursor != nil {
			upTo[i] = min(upTo[i], cursor[i].Seq)
		}
	}
	// Marks go up, never down, and replace the single marks below them.
	err = pgpool.Exec(ctx, s.pool, "mark all as read", `
		with raised as (
		  update read_marks m set seq = greatest(m.seq, want.seq)
		  from unnest($2::text[], $3::bigint[]) as want (name, seq), streams s, streams me
		  where s.name = want.name and me.name = $1 and m.reader = me.id and m.stream_id = s.id
		  returning m.reader, m.stream_id, want.seq
		)
		delete from notification_reads r using raised
		where r.reader = raised.reader and r.stream_id = raised.stream_id and r.seq <= raised.seq`,
		reader.Own(), reader.Streams(), upTo)
	if err != nil {
		return notification.View{}, err
	}
	return s.View(ctx, reader)
}
