package testbed

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
)

// City is where a benchmark's reports are, of Bogor's size: west, south, east, north.
var City = [4]float64{106.777, -6.604, 106.934, -6.444}

// Populate files reports of two years, as a city has them: near each other,
// most of them done.
func Populate(ctx context.Context, database string, reports int) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	for _, sql := range []string{
		`select setseed(0.5)`,
		`insert into departments (id, name) select n, 'Department ' || n from generate_series(1, 6) n`,
		`update categories set department_id = 1 + id % 6`,
		`insert into officials (id, name) select 'official-' || n, 'Official ' || n from generate_series(1, 20) n`,
		fmt.Sprintf(`
		insert into reports (id, title, description, category_id, latitude, longitude, address, privacy_level, status, score, version,
			created_at, updated_at, assignee_id, department_id)
		select gen_random_uuid(), kind || ' at house ' || n, repeat(kind || ' since some days, and nobody came. ', 6), 1 + n %% 11,
			least(%[4]f, greatest(%[2]f, (%[2]f + %[4]f) / 2 + (random() + random() + random() - 1.5) * 0.06)),
			least(%[3]f, greatest(%[1]f, (%[1]f + %[3]f) / 2 + (random() + random() + random() - 1.5) * 0.06)),
			'Jalan ' || street || ' ' || n %% 200, case when n %% 3 = 0 then 'anonymous' else 'public' end,
			status, (random() * random() * 80)::int, 1, filed, filed + random() * interval '20 days',
			case when random() < 0.5 then 'official-' || 1 + n %% 20 end, case when random() < 0.1 then 1 + n %% 6 end
		from (
			select n, now() - random() * interval '730 days' as filed,
				(array['Hole', 'Dark lamp', 'Waste', 'Blocked drain', 'Broken bench'])[1 + n %% 5] as kind,
				(array['Salak', 'Pajajaran', 'Juanda', 'Sudirman', 'Otista', 'Suryakencana', 'Merdeka'])[1 + n %% 7] as street,
				case when random() < 0.6 then 'resolved' when random() < 0.25 then 'rejected' when random() < 0.5 then 'in_progress' else 'pending' end as status
			from generate_series(1, %[5]d) n
		) filed`, City[0], City[1], City[2], City[3], reports),
		`insert into reporters (report_id, reporter_id, reporter_name) select id, 'resident', '' from reports`,
		`insert into status_history (report_id, to_status, report_version, changed_at) select id, 'pending', 1, created_at from reports`,
		`vacuum analyze`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("file reports: %w", err)
		}
	}
	return nil
}

// Screen is the request for the map of an area of a screen's size somewhere in the city.
func Screen(zoom int) string {
	wide, high := 1000.0/256*360/float64(int(1)<<zoom), 700.0/256*360/float64(int(1)<<zoom)
	longitude, latitude := City[0]+rand.Float64()*(City[2]-City[0]), City[1]+rand.Float64()*(City[3]-City[1])
	return fmt.Sprintf("/map/points?zoom=%d&bbox=%.5f,%.5f,%.5f,%.5f", zoom, longitude-wide/2, latitude-high/2, longitude+wide/2, latitude+high/2)
}
