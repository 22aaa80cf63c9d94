package postgres

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/schedule"
)

// Digests are the times at which readers get digests, and the digests that are due.
type Digests struct {
	pool    *pgxpool.Pool
	streams *Streams
}

// Settings returns when reader gets digests.
func (s *Digests) Settings(ctx context.Context, reader notification.Reader) (email.DigestSettings, error) {
	settings := email.DigestSettings{Frequency: email.Off, Weekday: time.Monday, At: email.DefaultDigestAt}
	err := s.pool.QueryRow(ctx, `
		select d.frequency, d.weekday, d.at from digests d join streams s on s.id = d.stream_id where s.name = $1`, reader.Own()).
		Scan(&settings.Frequency, &settings.Weekday, &settings.At)
	return settings, pgpool.Found(err, "read digest", nil)
}

// Set keeps when reader gets digests. The first covers the notifications from now on.
// It returns email.ErrNoAddress if reader has no contact.
func (s *Digests) Set(ctx context.Context, reader notification.Reader, settings email.DigestSettings) error {
	return s.streams.change(ctx, reader, func(tx pgx.Tx, stream int64) error {
		if settings.Frequency == email.Off {
			return pgpool.Exec(ctx, tx, "end digest", `delete from digests where stream_id = $1`, stream)
		}
		tag, err := tx.Exec(ctx, `
			insert into digests as d (stream_id, frequency, weekday, at, next_at, sent_seq)
			select s.id, $2, $3, $4, 'infinity', s.last_seq from streams s join contacts c on c.stream_id = s.id where s.id = $1
			on conflict (stream_id) do update set frequency = excluded.frequency, weekday = excluded.weekday, at = excluded.at`,
			stream, settings.Frequency, int(settings.Weekday), int(settings.At))
		if err != nil {
			return fmt.Errorf("keep digest: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return email.ErrNoAddress
		}
		return moveDigest(ctx, tx, stream)
	})
}

// moveDigest sets when the reader's next digest is due, by the clock of their zone. One
// that is due already is left to Claim.
func moveDigest(ctx context.Context, tx pgx.Tx, stream int64) error {
	var settings email.DigestSettings
	var name string
	var now time.Time
	err := tx.QueryRow(ctx, `
		select d.frequency, d.weekday, d.at, c.zone, now()
		from digests d join contacts c on c.stream_id = d.stream_id where d.stream_id = $1`, stream).
		Scan(&settings.Frequency, &settings.Weekday, &settings.At, &name, &now)
	if err != nil { // or there are no digests
		return pgpool.Found(err, "read digest", nil)
	}
	zone, err := email.Zone(name)
	if err != nil {
		return err
	}
	next, _ := settings.Next(now, zone)
	return pgpool.Exec(ctx, tx, "move digest", `update digests set next_at = $2 where stream_id = $1 and next_at > now()`, stream, next)
}

// Count returns how many of a half are due.
func (s *Digests) Count(ctx context.Context, tx pgx.Tx, half email.Half) (n int64, err error) {
	return pgpool.Value[int64](ctx, tx, "count due digests", `select count(*) from digests where next_at <= now() and stream_id % 2 = $1`, half)
}

// Claim writes a delivery for up to limit due digests of a half that are not
// empty, each due at a moment of its own within spread, and sets when the next ones are.
// A digest is about the numbers above those of the one before, up to the head of
// the stream: they have no gaps and are in the order of the commits, so that none is
// left out and none comes twice. It returns how many it claimed.
func (s *Digests) Claim(ctx context.Context, tx pgx.Tx, half email.Half, limit int, spread time.Duration) (claimed int, err error) {
	var (
		stream, after, head int64
		settings            email.DigestSettings
		due, now            time.Time
		contact             *uuid.UUID
		lane, zoneName      string
		active              bool

		mails digestColumns
		moved struct {
			streams, seqs []int64
			next          []time.Time
		}
		zones = make(map[string]*time.Location) // reading one takes longer than all the rest
	)
	columns := []any{&stream, &settings.Frequency, &settings.Weekday, &settings.At, &due, &after, &head, &now, &contact, &lane, &zoneName, &active}
	err = pgpool.ForEach(ctx, tx, "read due digests", columns, func() error {
		claimed++
		zone := zones[zoneName]
		if zone == nil {
			var err error
			if zone, err = schedule.Zone(zoneName); err != nil { // it was checked when it was given; lists of zones change
				zone = time.UTC
			}
			zones[zoneName] = zone
		}
		next, _ := settings.Next(now, zone)
		moved.streams, moved.seqs, moved.next = append(moved.streams, stream), append(moved.seqs, head), append(moved.next, next)
		if head == after || contact == nil || !active {
			return nil // it only moves
		}
		window, err := json.Marshal(email.Window{After: after, To: head})
		if err != nil {
			return fmt.Errorf("encode window: %w", err)
		}
		place := time.Duration(binary.BigEndian.Uint64((*contact)[8:])>>1) % max(spread, 1) // the same each day
		// The day and the head: a reader who moves the hour has two on a day.
		period := due.In(zone).Format(time.DateOnly) + "." + strconv.FormatInt(head, 10)
		mails.add(*contact, lane, period, window, place, next)
		return nil
	}, `
		select d.stream_id, d.frequency, d.weekday, d.at, d.next_at, d.sent_seq, s.last_seq, now(),
		  c.id, coalesce(c.lane, ''), coalesce(c.zone, 'UTC'), coalesce(c.state = 'active', false)
		from digests d join streams s on s.id = d.stream_id left join contacts c on c.stream_id = d.stream_id
		where d.next_at <= now() and d.stream_id % 2 = $2 order by d.next_at limit $1 for update of d skip locked`, limit, half)
	if err != nil {
		return 0, err
	}
	if claimed == 0 {
		return 0, nil
	}
	err = pgpool.Exec(ctx, tx, "write digests", `
		insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
		select $1, lane, target, period, $2, body, now() + make_interval(secs => place_s), next
		from unnest($3::text[], $4::text[], $5::text[], $6::bytea[], $7::double precision[], $8::timestamptz[])
		  as m (lane, target, period, body, place_s, next)
		on conflict (channel, target, message_id, kind) do nothing`,
		email.Channel, email.Digest, mails.lanes, mails.targets, mails.periods, mails.bodies, mails.places, mails.next)
	if err != nil {
		return 0, err
	}
	err = pgpool.Exec(ctx, tx, "move digests", `
		update digests d set sent_seq = m.seq, next_at = m.next
		from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as m (stream_id, seq, next) where d.stream_id = m.stream_id`,
		moved.streams, moved.seqs, moved.next)
	if err != nil {
		return 0, err
	}
	return claimed, nil
}

// digestColumns are the deliveries of digests.
type digestColumns struct {
	lanes, targets, periods []string
	bodies                  [][]byte
	places                  []float64 // in seconds from now
	next                    []time.Time
}

func (c *digestColumns) add(contact uuid.UUID, lane, period string, window []byte, place time.Duration, next time.Time) {
	c.lanes = append(c.lanes, lane)
	c.targets = append(c.targets, contact.String())
	c.periods = append(c.periods, period)
	c.bodies = append(c.bodies, window)
	c.places = append(c.places, place.Seconds())
	c.next = append(c.next, next)
}
