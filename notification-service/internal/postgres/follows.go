package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// Follows are the reports that readers follow.
type Follows struct {
	pool    *pgxpool.Pool
	streams *Streams
}

// Follow notifies reader of the report's changes of status from now on. Following again
// changes nothing. Whether the report exists is not checked: it is in another database.
func (s *Follows) Follow(ctx context.Context, reader notification.Reader, report uuid.UUID) error {
	if _, err := s.streams.View(ctx, reader); err != nil { // the reader may be new
		return err
	}
	// Two requests at once may both find room: the limits keep the work small, and
	// one more is none.
	var already, fresh, full bool
	err := s.pool.QueryRow(ctx, `
		with me as (
		  select id from streams where name = $1
		), already as (
		  select from follows f join me on f.stream_id = me.id where f.report_id = $2
		), fresh as (
		  insert into follows (stream_id, report_id)
		  select id, $2 from me
		  where (select count(*) from follows f where f.stream_id = me.id) < $3
		    and (select count(*) from follows f where f.report_id = $2) < $4
		  on conflict do nothing
		  returning 1
		)
		select exists (select from already), exists (select from fresh), (select count(*) from follows f join me on f.stream_id = me.id) >= $3`,
		reader.Own(), report, notification.MaxFollows, notification.MaxFollowers).Scan(&already, &fresh, &full)
	switch {
	case err != nil:
		return fmt.Errorf("follow report: %w", err)
	case already: // nothing was written, and the answer says that reader follows it
		return pgpool.Barrier(ctx, s.pool)
	case full && !fresh:
		return notification.ErrFollows
	case !fresh:
		return notification.ErrFollowers
	default:
		return nil
	}
}

// Unfollow undoes Follow.
func (s *Follows) Unfollow(ctx context.Context, reader notification.Reader, report uuid.UUID) error {
	return pgpool.Exec(ctx, s.pool, "unfollow report", `
		delete from follows where report_id = $2 and stream_id = (select id from streams where name = $1)`, reader.Own(), report)
}

// List lists the reports that reader follows, the latest first: those that are hidden
// as well, because one that never was is listed, too, and nobody may find out which it
// is.
func (s *Follows) List(ctx context.Context, reader notification.Reader) ([]notification.Follow, error) {
	return pgpool.Collect(ctx, s.pool, "list follows", pgx.RowToStructByPos[notification.Follow], `
		select f.report_id, f.followed_at from follows f join streams s on s.id = f.stream_id
		where s.name = $1 order by f.followed_at desc, f.report_id`, reader.Own())
}

// followers returns the streams of those who follow the reports whose status,
// category or place the batch changes. For other batches it makes no query: votes are many, and followers
// are not notified of them.
func followers(ctx context.Context, pool *pgxpool.Pool, batch []Message) (map[uuid.UUID][]notification.Stream, error) {
	var reports []uuid.UUID
	for _, m := range batch {
		if data := m.Value.Feed; data.ForFollowers() && !slices.Contains(reports, data.ReportID) {
			reports = append(reports, data.ReportID)
		}
	}
	if len(reports) == 0 {
		return nil, nil
	}
	// PostgreSQL plans "= any" of an array each time, which costs more than
	// to answer it.
	streams := make(map[uuid.UUID][]notification.Stream)
	var report uuid.UUID
	var stream notification.Stream
	err := pgpool.ForEach(ctx, pool, "read followers", []any{&report, &stream}, func() error {
		streams[report] = append(streams[report], stream)
		return nil
	}, `
		select f.report_id, s.name
		from unnest($1::uuid[]) as wanted (id) join follows f on f.report_id = wanted.id join streams s on s.id = f.stream_id`, reports)
	if err != nil {
		return nil, err
	}
	return streams, nil
}
