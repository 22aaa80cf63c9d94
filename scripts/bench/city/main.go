// Command city measures how report-service answers in a city with many reports:
// the map of any area, the officials' queue by filter and order with its counts,
// and the export of all, through the real binary. The broker is away, so that nothing
// is published at the same time.
//
// The last line has the figures as name=value. Times are in milliseconds, from
// request to the last byte, one request at a time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// The city is Bogor's size: west, south, east, north.
var city = [4]float64{106.777, -6.604, 106.934, -6.444}

// A bench is what the command line says, and what it is measured on.
type bench struct {
	reports, rounds int
	service         *testbed.ReportService
	token           string
	out             io.Writer
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "city:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	b := &bench{out: out}
	flags := flag.NewFlagSet("city", flag.ContinueOnError)
	flags.IntVar(&b.reports, "reports", 100_000, "reports of the city")
	flags.IntVar(&b.rounds, "rounds", 25, "requests of each kind")
	binary := flags.String("service", "../../bin/report-service", "report-service's `program`")
	migrate := flags.String("migrate", "../../bin/migrate", "the `program` that migrates")
	if err := flags.Parse(args); err != nil {
		return err
	}
	database, drop, err := testbed.Database(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	// The program migrates, not this module: it may be of another revision.
	up := exec.CommandContext(ctx, *migrate, "up", "-database", "report")
	up.Env = append(os.Environ(), "DATABASE_URL="+database)
	if output, err := up.CombinedOutput(); err != nil {
		return fmt.Errorf("migrate: %w: %s", err, output)
	}
	if err := populate(ctx, database, b.reports); err != nil {
		return err
	}
	if b.service, err = testbed.StartReportService(ctx, *binary, database); err != nil {
		return err
	}
	defer b.service.Stop()
	if b.token, err = b.service.Token("olga", "official"); err != nil {
		return fmt.Errorf("sign a token: %w", err)
	}
	return b.measure(ctx)
}

// populate files reports of two years, as a city has them: near each other,
// most of them done.
func populate(ctx context.Context, database string, reports int) error {
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
		) filed`, city[0], city[1], city[2], city[3], reports),
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

// measure makes all requests and prints what they took.
func (b *bench) measure(ctx context.Context) error {
	var figures []string
	add := func(name string, value float64) {
		figures = append(figures, fmt.Sprintf("%s=%.1f", name, value))
		fmt.Fprintf(b.out, "%-28s %8.1f\n", name, value)
	}
	var areas []string
	for range b.rounds {
		for zoom := 10; zoom <= 17; zoom++ {
			areas = append(areas, area(zoom))
		}
	}
	took, err := b.time(ctx, areas)
	if err != nil {
		return err
	}
	add("map_p50_ms", stats.Median(took))
	add("map_p99_ms", stats.Percentile(took, 99))
	for name, path := range map[string]string{
		"map_whole": whole(""), "map_whole_open": whole("&status=pending&status=in_progress"), "map_whole_words": whole("&q=lamp"),
	} {
		took, err := b.time(ctx, repeat(path, b.rounds))
		if err != nil {
			return err
		}
		add(name+"_p50_ms", stats.Median(took))
	}
	slowest, which := 0.0, ""
	var all []float64
	for _, filter := range []string{
		"", "status=pending", "status=pending&status=in_progress", "status=resolved", "category=3", "status=pending&category=3&category=4", "department=2",
		"assignee=official-3", "assignee=none", "status=pending&status=in_progress&assignee=none", "q=lamp", "q=salak+199",
	} {
		for _, order := range []string{"newest", "oldest", "changed", "score", "due"} {
			took, err := b.time(ctx, repeat("/reports/queue?limit=50&order="+order+"&"+filter, b.rounds))
			if err != nil {
				return err
			}
			all = append(all, took...)
			if p50 := stats.Median(took); p50 > slowest {
				slowest, which = p50, order+" "+filter
			}
		}
	}
	add("queue_p50_ms", stats.Median(all))
	add("queue_slowest_p50_ms", slowest)
	fmt.Fprintln(b.out, "slowest:", which)
	if took, err = b.time(ctx, repeat("/reports/queue/counts", b.rounds)); err != nil {
		return err
	}
	add("counts_p50_ms", stats.Median(took))
	if err := b.export(ctx, add); err != nil {
		return err
	}
	fmt.Fprintln(b.out, strings.Join(figures, " "))
	return nil
}

// area is one of a screen's size somewhere in the city.
func area(zoom int) string {
	wide, high := 1000.0/256*360/float64(int(1)<<zoom), 700.0/256*360/float64(int(1)<<zoom)
	longitude, latitude := city[0]+rand.Float64()*(city[2]-city[0]), city[1]+rand.Float64()*(city[3]-city[1])
	return fmt.Sprintf("/map/points?zoom=%d&bbox=%.5f,%.5f,%.5f,%.5f", zoom, longitude-wide/2, latitude-high/2, longitude+wide/2, latitude+high/2)
}

func whole(filter string) string {
	return fmt.Sprintf("/map/points?zoom=12&bbox=%g,%g,%g,%g%s", city[0], city[1], city[2], city[3], filter)
}

func repeat(path string, times int) []string {
	paths := make([]string, times)
	for i := range paths {
		paths[i] = path
	}
	return paths
}

// warmUp is how many requests are made before those that count.
const warmUp = 3

// time returns how many milliseconds each of the requests took.
func (b *bench) time(ctx context.Context, paths []string) ([]float64, error) {
	var took []float64
	for i, path := range append(paths[:min(warmUp, len(paths)):min(warmUp, len(paths))], paths...) {
		began := time.Now()
		if _, err := b.get(ctx, path); err != nil {
			return nil, err
		}
		if i >= warmUp {
			took = append(took, float64(time.Since(began).Microseconds())/1000)
		}
	}
	return took, nil
}

// get reads an answer and returns how many bytes it has.
func (b *bench) get(ctx context.Context, path string) (int64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, (&url.URL{Scheme: "http", Host: b.service.Addr}).String()+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	n, err := io.Copy(io.Discard, response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return n, err
}

// export reads all reports, and says how much more memory that took than the
// service had before.
func (b *bench) export(ctx context.Context, add func(string, float64)) error {
	before, err := memory(b.service.PID(), "VmRSS")
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := b.get(ctx, "/reports/export")
	if err != nil {
		return err
	}
	add("export_s", time.Since(began).Seconds())
	add("export_mib", float64(n)/(1<<20))
	most, err := memory(b.service.PID(), "VmHWM")
	if err != nil {
		return err
	}
	add("export_growth_mib", float64(most-before)/(1<<20))
	return nil
}

// memory returns a figure of a process's memory, in bytes.
func memory(pid int, figure string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	_, after, found := strings.Cut(string(status), figure+":")
	var kib int64
	if _, err := fmt.Sscan(after, &kib); !found || err != nil {
		return 0, fmt.Errorf("read memory: no %s", figure)
	}
	return kib << 10, nil
}
