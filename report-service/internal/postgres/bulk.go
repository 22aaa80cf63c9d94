package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// BeginBulkMove records that an official is about to move many reports, and
// returns the number of the entry. If the same request was answered before, it
// returns that answer instead.
func (s *Workbench) BeginBulkMove(ctx context.Context, m report.BulkMove, idempotent *report.Idempotent) (id int64, earlier report.StoredResponse, err error) {
	if idempotent != nil {
		before := s.db.earlierThan(idempotent)
		before.locked = true
		err := optional(&before.found, &before.request, &before.response)(s.db.pool.QueryRow(ctx, storedSQL, before.stored, KeyLife))
		if err != nil {
			return 0, nil, fmt.Errorf("select idempotency key: %w", err)
		}
		if err := before.check(); err != nil {
			return 0, nil, err
		}
		if before.found {
			return 0, before.response, pgpool.Barrier(ctx, s.db.pool)
		}
	}
	var begin pgx.Batch // without a begin of its own, it is one transaction and one round trip
	queueOfficials(&begin, m.By)
	begin.Queue(`insert into bulk_moves (official_id, status, note, reports) values ($1, $2, $3, $4) returning id`,
		m.By.ID, m.To, m.Note, m.Reports).QueryRow(func(row pgx.Row) error { return row.Scan(&id) })
	err = send(ctx, s.db.pool, "begin bulk move", &begin)
	return id, nil, err
}

// EndBulkMove records which reports were not moved, together with the answer
// for repetitions.
func (s *Workbench) EndBulkMove(ctx context.Context, id int64, refused []uuid.UUID, idempotent *report.Idempotent) error {
	var end pgx.Batch // one transaction as well
	end.Queue(`update bulk_moves set refused = $2 where id = $1`, id, refused)
	before := s.db.earlierThan(idempotent)
	before.keep(&end)
	return send(ctx, s.db.pool, "end bulk move", &end)
}

// BulkMoves returns the latest bulk moves of reports in reach of by, newest first, without
// the others among these.
func (s *Workbench) BulkMoves(ctx context.Context, limit int, by report.User) ([]report.BulkMove, error) {
	q := query{args: []any{limit}}
	reports, refused, some := `b.reports`, `b.refused`, ``
	if !by.Scope.City() {
		within := ` from unnest(%s) with ordinality as m (id, place) join reports r using (id) where ` + q.within(by.Reach(report.Handle), "")
		all := func(of string) string { return `array(select m.id` + fmt.Sprintf(within, of) + ` order by m.place)` }
		reports, refused = all(reports), `case when b.refused is not null then `+all(refused)+` end`
		some = ` where exists (select` + fmt.Sprintf(within, `b.reports`) + `)`
	}
	return pgpool.Collect(ctx, s.db.pool, "select bulk moves", func(row pgx.CollectableRow) (m report.BulkMove, err error) {
		return m, row.Scan(utc{&m.At}, &m.By.ID, &m.By.Name, &m.To, &m.Note, &m.Reports, &m.Refused)
	}, `
		select b.at, o.id, o.name, b.status, b.note, `+reports+`, `+refused+`
		from bulk_moves b join officials o on o.id = b.official_id`+some+`
		order by b.id desc limit $1`, q.args...)
}
