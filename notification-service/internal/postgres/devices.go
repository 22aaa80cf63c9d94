package postgres

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const deviceColumns = `p.id, p.lane, p.language, p.user_agent, p.created_at, p.last_ok_at`

// scanDevice reads deviceColumns, and the columns after them into more.
func scanDevice(row pgx.CollectableRow, more ...any) (d push.Device, err error) {
	err = row.Scan(append([]any{&d.ID, &d.Lane, &d.Language, &d.Label, &d.CreatedAt, &d.LastUsedAt}, more...)...)
	return d, err
}

func readDevices(ctx context.Context, q pgpool.Querier, sql string, args ...any) ([]push.Device, error) {
	scan := func(row pgx.CollectableRow) (push.Device, error) { return scanDevice(row) }
	return pgpool.Collect(ctx, q, "read devices", scan, sql, args...)
}

// Devices are the browsers of readers who asked for pushes.
type Devices struct {
	canceller
	pool    *pgxpool.Pool
	streams *Streams
}

// List returns the devices of reader, the newest first, without their addresses.
func (s *Devices) List(ctx context.Context, reader notification.Reader) ([]push.Device, error) {
	return readDevices(ctx, s.pool, `
		select `+deviceColumns+` from push_subscriptions p join streams s on s.id = p.stream_id
		where s.name = $1 order by p.created_at desc, p.id`, reader.Own())
}

// Add keeps d as a device of reader, and reports whether it is a new one. A
// device that one of the hashes recognises keeps its id; only its label and language
// change. A device of another reader becomes reader's, who uses the browser now. The
// error is push.ErrTooManyDevices if reader has the maximum.
func (s *Devices) Add(ctx context.Context, reader notification.Reader, d push.Device, hashes [][]byte) (kept push.Device, added bool, err error) {
	err = s.streams.change(ctx, reader, func(tx pgx.Tx, stream int64) error {
		known, err := readDevices(ctx, tx, `
			update push_subscriptions p set language = $3, user_agent = $4 where stream_id = $1 and endpoint_mac = any($2::bytea[])
			returning `+deviceColumns, stream, hashes, d.Language, d.Label)
		if err != nil {
			return err
		}
		if len(known) > 0 {
			kept = known[0]
			return nil
		}
		has, err := pgpool.Value[int](ctx, tx, "count devices", `select count(*) from push_subscriptions where stream_id = $1`, stream)
		if err != nil {
			return err
		}
		if has >= push.MaxDevices {
			return push.ErrTooManyDevices
		}
		// Under an earlier key the row of somebody else has another hash.
		if err := pgpool.Exec(ctx, tx, "take over device", `delete from push_subscriptions where endpoint_mac = any($1::bytea[])`, hashes); err != nil {
			return err
		}
		inserted, err := readDevices(ctx, tx, `
			insert into push_subscriptions as p (id, stream_id, endpoint, endpoint_mac, keys, lane, language, user_agent)
			values ($1, $2, $3, $4, $5, $6, $7, $8)
			on conflict (endpoint_mac) do update set id = excluded.id, stream_id = excluded.stream_id, endpoint = excluded.endpoint,
			  keys = excluded.keys, lane = excluded.lane, language = excluded.language, user_agent = excluded.user_agent,
			  created_at = excluded.created_at, last_ok_at = null
			returning `+deviceColumns,
			d.ID, stream, d.Endpoint, hashes[0], d.Keys, d.Lane, d.Language, d.Label)
		if err != nil {
			return err
		}
		kept, added = inserted[0], true
		return pgpool.Exec(ctx, tx, "keep the kinds of pushes", `insert into push_preferences (stream_id, kinds) values ($1, $2) on conflict do nothing`, stream, push.DefaultKinds)
	})
	return kept, added, err
}

// Remove removes a device of reader. Waiting deliveries are cancelled when they are
// due.
func (s *Devices) Remove(ctx context.Context, reader notification.Reader, id uuid.UUID) error {
	return pgpool.Exec(ctx, s.pool, "remove device", `
		delete from push_subscriptions where id = $2 and stream_id = (select id from streams where name = $1)`, reader.Own(), id)
}

// Kinds returns the kinds that are pushed to reader's devices.
func (s *Devices) Kinds(ctx context.Context, reader notification.Reader) ([]string, error) {
	var kinds []string
	err := s.pool.QueryRow(ctx, `
		select w.kinds from push_preferences w join streams s on s.id = w.stream_id where s.name = $1`, reader.Own()).Scan(&kinds)
	return kinds, pgpool.Found(err, "read the kinds of pushes", nil)
}

// SetKinds keeps the kinds that are pushed to reader's devices.
func (s *Devices) SetKinds(ctx context.Context, reader notification.Reader, kinds []string) error {
	if _, err := s.streams.View(ctx, reader); err != nil { // the reader may be new
		return err
	}
	return pgpool.Exec(ctx, s.pool, "keep the kinds of pushes", `
		insert into push_preferences (stream_id, kinds) select id, $2 from streams where name = $1
		on conflict (stream_id) do update set kinds = excluded.kinds`, reader.Own(), kinds)
}

// Draft returns the present state of a delivery's subject: whether the device is
// there, and what its reader has chosen and read.
func (s *Devices) Draft(ctx context.Context, d *ledger.Delivery) (push.Draft, error) {
	id, err := uuid.Parse(d.Target)
	if err != nil {
		return push.Draft{}, push.ErrNoDevice
	}
	var stream int64
	var kinds []string
	draft, err := pgpool.One(ctx, s.pool, "read device", push.ErrNoDevice, func(row pgx.CollectableRow) (draft push.Draft, err error) {
		var endpoint, keys string
		var from, to *int
		draft.Device, err = scanDevice(row, &endpoint, &keys, &stream, &kinds, &draft.Now, &draft.Zone, &from, &to)
		draft.Device.Endpoint, draft.Device.Keys = endpoint, keys
		if from != nil && to != nil {
			draft.Quiet = &ledger.Quiet{From: *from, To: *to}
		}
		return draft, err
	}, `
		select `+deviceColumns+`, p.endpoint, p.keys, p.stream_id, coalesce(w.kinds, '{}'), now(), coalesce(c.zone, ''), c.quiet_from, c.quiet_to
		from push_subscriptions p left join push_preferences w on w.stream_id = p.stream_id left join contacts c on c.stream_id = p.stream_id
		where p.id = $1`, id)
	if err != nil {
		return push.Draft{}, err
	}
	kind, item, err := readItem(ctx, s.pool, stream, d)
	if err != nil {
		return push.Draft{}, err
	}
	if !slices.Contains(kinds, kind) {
		return push.Draft{}, ledger.ErrUnwanted
	}
	draft.Item = item
	return draft, nil
}

// Used notes that a push was sent to a device.
func (s *Devices) Used(ctx context.Context, device uuid.UUID) error {
	return pgpool.Exec(ctx, s.pool, "note use of a device", `update push_subscriptions set last_ok_at = now() where id = $1`, device)
}

// Drop removes a device that its push service no longer knows.
func (s *Devices) Drop(ctx context.Context, device uuid.UUID) error {
	return pgpool.Exec(ctx, s.pool, "remove device", `delete from push_subscriptions where id = $1`, device)
}
