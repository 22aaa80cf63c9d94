package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// See records that a member has used the service, and in which role.
func (s *Workbench) See(ctx context.Context, m report.Member) error {
	return pgpool.Exec(ctx, s.db.pool, "record member", `
		insert into officials (id, name, role, seen_at) values ($1, $2, $3, $4)
		on conflict (id) do update set name = excluded.name, role = excluded.role, seen_at = excluded.seen_at
		where (officials.name, officials.role, officials.seen_at) is distinct from (excluded.name, excluded.role, excluded.seen_at)`,
		m.ID, m.Name, m.Role, m.SeenAt)
}

// People returns at most limit of those who were seen, the last one first.
func (s *Workbench) People(ctx context.Context, limit int) ([]report.Member, error) {
	return pgpool.Collect(ctx, s.db.pool, "read people", pgx.RowToStructByPos[report.Member],
		`select id, name, role, seen_at from officials where seen_at is not null order by seen_at desc, name, id limit $1`, limit)
}
