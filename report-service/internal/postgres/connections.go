package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// Connections are the machines of departments, and what they alone do with reports.
type Connections struct{ db *DB }

// NewConnections returns the connections in db.
func NewConnections(db *DB) *Connections { return &Connections{db} }

const connectionSQL = `
	select k.id, k.name, coalesce(d.id, 0), coalesce(d.code, ''), coalesce(d.name, ''), k.private, k.made_at, k.revoked_at
	from connections k left join departments d on d.id = k.department_id`

func scanConnection(row pgx.CollectableRow) (c report.Connection, err error) {
	err = row.Scan(&c.ID, &c.Name, &c.Department.ID, &c.Department.Code, &c.Department.Name, &c.Private, utc{&c.MadeAt}, utcOrNil{&c.RevokedAt})
	return c, err
}

// All returns all connections, the newest first.
func (s *Connections) All(ctx context.Context) ([]report.Connection, error) {
	return pgpool.Collect(ctx, s.db.pool, "select connections", scanConnection, connectionSQL+` order by k.made_at desc, k.id desc`)
}

// ByKey returns the connection whose key has the hash, if it is valid.
func (s *Connections) ByKey(ctx context.Context, hash []byte) (report.Connection, error) {
	return pgpool.One(ctx, s.db.pool, "select connection", report.ErrNoConnection, scanConnection,
		connectionSQL+` where k.hash = $1 and k.revoked_at is null and d.id is not null`, hash)
}

// Add keeps a new connection, of whose key hash is, and returns it with its department.
func (s *Connections) Add(ctx context.Context, c report.Connection, hash []byte, by report.Official) (report.Connection, error) {
	err := pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			insert into connections (id, name, department_id, hash, private, made_at)
			select $1, $2, d.id, $4, $5, $6 from departments d where d.id = $3 for key share of d
			returning (select name from departments where id = $3)`,
			c.ID, c.Name, c.Department.ID, hash, c.Private, c.MadeAt).Scan(&c.Department.Name)
		if err = pgpool.Found(err, "insert connection", fault.NewInvalid("/department_id", "there is no such department")); err != nil {
			return err
		}
		return settings.Record(ctx, tx, by, "connections", map[string]any{"keys_made": []string{c.Name}})
	})
	return c, err
}

// Revoke ends the key of a connection, for ever. One that has ended stays as it is.
func (s *Connections) Revoke(ctx context.Context, id uuid.UUID, by report.Official) error {
	return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		var name string
		var revoked bool
		err := tx.QueryRow(ctx, `select name, revoked_at is not null from connections where id = $1 for update`, id).Scan(&name, &revoked)
		if err = pgpool.Found(err, "select connection", report.ErrNoConnection); err != nil || revoked {
			return err
		}
		if err := pgpool.Exec(ctx, tx, "revoke key", `update connections set revoked_at = now() where id = $1`, id); err != nil {
			return err
		}
		return settings.Record(ctx, tx, by, "connections", map[string]any{"keys_revoked": []string{name}})
	})
}

// externalSQL is what the report r is called in another system, as JSON or null.
const externalSQL = `(select jsonb_build_object('Number', e.number, 'URL', e.url, 'State', e.state, 'System', k.name, 'At', e.set_at)
	from external_refs e join connections k on k.id = e.connection_id where e.report_id = r.id)`

// connected is what a connection reads of a report.
var connected = append(of(func(c *report.ConnectedReport) *report.Report { return &c.Report }, shown("privacy_level", "score", "hidden_reason", "withdrawn_at")...),
	selected[report.ConnectedReport]{photosSQL, func(c *report.ConnectedReport) any { return &c.Photos }},
	selected[report.ConnectedReport]{externalSQL, func(c *report.ConnectedReport) any { return &c.External }})

// Report returns a report as a connection reads it.
func (s *Connections) Report(ctx context.Context, id uuid.UUID, by report.User) (report.ConnectedReport, error) {
	q := query{args: []any{id}}
	within := q.within(by.Reach(report.Read), "")
	return pgpool.One(ctx, s.db.pool, "select report", report.ErrNotFound, connected.row, `
		select `+connected.sql()+` from reports r join categories c on c.id = r.category_id where r.id = $1 and `+within, q.args...)
}

// List returns a page of the reports that a connection reads, the oldest first.
func (s *Connections) List(ctx context.Context, cq report.ConnectedQuery, by report.User) (reports []report.ConnectedReport, next *report.Cursor, err error) {
	var q query
	filter := cq.Filter()
	q.filter(filter)
	q.and(q.within(by.Reach(report.Read), ""))
	if !cq.ChangedFrom.IsZero() {
		q.and(`(r.updated_at >= %[1]s or r.id = any(array(select a.report_id from report_acts a where a.at >= %[1]s and a.action in ('assign', 'forward'))))`, cq.ChangedFrom)
	}
	if cq.Unnumbered {
		q.and(`not exists (select from external_refs e where e.report_id = r.id)`)
	}
	page, _ := q.page(filter, cq.After, cq.Limit)
	reports, err = pgpool.Collect(ctx, s.db.pool, "select reports", connected.row, `
		select `+connected.sql()+` from reports r join categories c on c.id = r.category_id`+page, q.args...)
	if err == nil && len(reports) > cq.Limit {
		reports = reports[:cq.Limit]
		next = filter.CursorAt(reports[cq.Limit-1].Report)
	}
	return reports, next, err
}

// SetExternalRef sets what a report is called in the system of a connection. Officials read
// it among its acts if that is something else than before. With idempotent it does so at
// most once per key, as Reports.Create does.
func (s *Connections) SetExternalRef(ctx context.Context, id uuid.UUID, ref report.ExternalRef, by report.User, idempotent *report.Idempotent) error {
	return s.db.act(ctx, id, by.AsOfficial(), report.Handle, func(tx pgx.Tx, _ *lockedReport, w *writeBatch) error {
		before := s.db.earlierThan(idempotent)
		if err := before.readNow(ctx, tx); err != nil {
			return err
		}
		if done, err := before.done(w); err != nil || done {
			return err
		}
		tag, err := tx.Exec(ctx, `
			insert into external_refs as e (report_id, number, url, state, connection_id, set_at) values ($1, $2, $3, $4, $5, $6)
			on conflict (report_id) do update set number = excluded.number, url = excluded.url, state = excluded.state,
				connection_id = excluded.connection_id, set_at = excluded.set_at
			where (e.number, e.url, e.state, e.connection_id) is distinct from (excluded.number, excluded.url, excluded.state, excluded.connection_id)`,
			id, ref.Number, ref.URL, ref.State, by.ID, ref.At)
		if err != nil {
			return fmt.Errorf("set external number: %w", err)
		}
		if tag.RowsAffected() > 0 {
			w.record(actRow{reportID: id, by: by.AsOfficial(), kind: report.SetExternalRef, text: strings.TrimSpace(ref.Number + " " + ref.State)})
		}
		before.keep(&w.others)
		return nil
	})
}
