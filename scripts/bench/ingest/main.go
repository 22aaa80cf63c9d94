// Command ingest measures what report-service accepts over HTTP, through its
// real binary, against a floor: a bare client that makes the same changes in
// plain transactions, one each, over as many connections.
//
// The passes of the two alternate on the same server, so that whatever else
// the machine does meets both. The broker is away: what is measured is the
// way into the database. The last line has the medians of the ratios.
//
// With -areas it measures the service with so many areas against the same without any,
// in the same way, each on a database of its own with -filed reports.
//
// With -assets it uploads so many things, and measures filings on one against filings on none.
//
// With -base it measures two revisions of report-service in the same way, each on
// a database of its own, and no floor, and how fast officials read their queue.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

var (
	conns       = flag.Int("conns", 64, "connections of each side")
	passes      = flag.Int("passes", 5, "passes of each side, an odd number")
	passLength  = flag.Duration("length", 3*time.Second, "length of a pass")
	spread      = flag.Int("reports", 1000, "reports that spread votes go to")
	service     = flag.String("service", "../../bin/report-service", "report-service's `program`")
	migrate     = flag.String("migrate", "../../bin/migrate", "the `program` that migrates")
	areas       = flag.Int("areas", 0, "areas of the city, to compare with one without any")
	assets      = flag.Int("assets", 0, "things of the city, to compare filings on one with others")
	filed       = flag.Int("filed", 100_000, "reports that are there before, with -areas, and before the queue is read")
	base        = flag.String("base", "", "report-service's `program` of another revision, to compare with")
	baseMigrate = flag.String("base-migrate", "", "the `program` that migrates for -base")
)

func main() { testbed.Main(run) }

func run(ctx context.Context, b *testbed.Bed) error {
	if (*base == "") != (*baseMigrate == "") {
		return errors.New("-base and -base-migrate go together: both are programs of the other revision")
	}
	now, err := start(ctx, b, *service, *migrate)
	if err != nil {
		return err
	}
	if *areas > 0 {
		return withAreas(ctx, b, now)
	}
	if *assets > 0 {
		return withAssets(ctx, now)
	}
	if *base == "" {
		return againstFloor(ctx, now)
	}
	then, err := start(ctx, b, *base, *baseMigrate)
	if err != nil {
		return err
	}
	return againstBase(ctx, now, then)
}

// A revision is a build of the service, and what it runs on.
type revision struct {
	service *testbed.ReportService
	floor   *floor // on the same database
}

// start runs a revision on a database of its own. Its program migrates, not this
// module: it may be of another revision.
func start(ctx context.Context, b *testbed.Bed, service, migrate string) (*revision, error) {
	database, err := b.Migrated(ctx, migrate, migrations.Report)
	if err != nil {
		return nil, err
	}
	r := &revision{}
	if r.floor, err = newFloor(ctx, database, *conns, *spread); err != nil {
		return nil, err
	}
	b.Defer(func() error { r.floor.close(); return nil })
	r.service, err = b.ReportService(ctx, service, database)
	return r, err
}

// A maker makes changes: the floor, or clients of a service.
type maker interface {
	create(ctx context.Context, conn, k int) error
	voteOn(reports []uuid.UUID) action
}

// changes are what is measured, as the last line names them. one is for votes that
// all go to the same report.
var changes = []struct {
	name, figure string
	of           func(m maker, reports []uuid.UUID) action
}{
	{"creates", "create", func(m maker, _ []uuid.UUID) action { return m.create }},
	{"votes on many reports", "votes_spread", func(m maker, reports []uuid.UUID) action { return m.voteOn(reports) }},
	{"votes on one report", "votes_hot", func(m maker, reports []uuid.UUID) action { return m.voteOn(reports[:1]) }},
}

// againstFloor makes every comparison with the floor.
func againstFloor(ctx context.Context, r *revision) error {
	var figures testbed.Figures
	var rates [2][]float64 // of creates
	for i, change := range changes {
		c, err := connect(ctx, r.service, *conns, "resident")
		if err != nil {
			return err
		}
		sides := [2]action{change.of(c, r.floor.reports), change.of(r.floor, r.floor.reports)}
		all, err := compare(ctx, change.name, "floor", sides)
		c.close()
		if err != nil {
			return err
		}
		figures.AddRatio(change.figure+"_ratio", all[0], all[1])
		if i == 0 {
			rates = all
		}
	}
	c, err := connect(ctx, r.service, *conns, "resident")
	if err != nil {
		return err
	}
	defer c.close()
	var p99 [2][]float64
	for _, side := range testbed.Turns(*passes, 2) {
		took, err := openLoop(ctx, *conns, *passLength, stats.Median(rates[side])/2, []action{c.create, r.floor.create}[side])
		if err != nil {
			return err
		}
		p99[side] = append(p99[side], took)
	}
	fmt.Printf("%-24s floor %6.2f ms   over HTTP %6.2f ms\n", "p99 of a create, half load", stats.Median(p99[1]), stats.Median(p99[0]))
	figures.AddRatio("p99_ratio_half_load", p99[0], p99[1])
	figures.Print()
	return nil
}

// city has the place of newReport within it: west, south, east, north.
var city = [4]float64{107.5, -7, 107.7, -6.8}

// withAreas compares creates of a service with areas with those of one without.
func withAreas(ctx context.Context, b *testbed.Bed, with *revision) error {
	without, err := start(ctx, b, *service, *migrate)
	if err != nil {
		return err
	}
	if err := with.service.SetAreas(ctx, *areas, city); err != nil {
		return err
	}
	var sides [2]action
	for _, r := range []*revision{with, without} {
		if err := r.fill(ctx, *filed); err != nil {
			return err
		}
	}
	for i, r := range []*revision{with, without} { // now: the services close what nobody uses for a while
		c, err := connect(ctx, r.service, *conns, "resident")
		if err != nil {
			return err
		}
		defer c.close()
		sides[i] = c.create
	}
	rates, err := compare(ctx, "creates with areas", "without", sides)
	if err != nil {
		return err
	}
	var p99 [2][]float64
	for _, side := range testbed.Turns(*passes, 2) {
		took, err := openLoop(ctx, *conns, *passLength, stats.Median(rates[1])/2, sides[side])
		if err != nil {
			return err
		}
		p99[side] = append(p99[side], took)
	}
	fmt.Printf("%-24s without %6.2f ms   with %6.2f ms\n", "p99 of a create, half load", stats.Median(p99[1]), stats.Median(p99[0]))
	var figures testbed.Figures
	figures.AddRatio("create_areas_ratio", rates[0], rates[1])
	figures.AddRatio("p99_areas_ratio", p99[0], p99[1])
	figures.Print()
	return nil
}

// fill files reports in the whole city.
func (r *revision) fill(ctx context.Context, reports int) error {
	_, err := r.floor.conns[0].Exec(ctx, fmt.Sprintf(`
		insert into reports (id, title, description, category_id, latitude, longitude, address, privacy_level, status, score, version, created_at, updated_at)
		select gen_random_uuid(), 'Report ' || n, 'Since Monday.', 1 + n %% 11, %g + random() * %g, %g + random() * %g, '', 'public', 'pending', 0, 1,
			now() - random() * interval '700 days', now()
		from generate_series(1, %d) n`, city[1], city[3]-city[1], city[0], city[2]-city[0], reports))
	if err != nil {
		return fmt.Errorf("fill the city: %w", err)
	}
	return nil
}

// againstBase makes every comparison of two revisions, and reads the officials' queue of a
// whole city.
func againstBase(ctx context.Context, now, then *revision) error {
	var figures testbed.Figures
	compared := func(name, figure, role string, conns int, of func(*clients, *revision) action) error {
		var sides [2]action
		// Connections of its own: the services close what nobody uses for a while.
		for i, r := range []*revision{now, then} {
			c, err := connect(ctx, r.service, conns, role)
			if err != nil {
				return err
			}
			defer c.close()
			sides[i] = of(c, r)
		}
		all, err := compareOver(ctx, conns, name, "base", sides)
		if err == nil {
			figures.AddRatio(figure+"_to_base", all[0], all[1])
		}
		return err
	}
	for _, change := range changes {
		of := func(c *clients, r *revision) action { return change.of(c, r.floor.reports) }
		if err := compared(change.name, change.figure, "resident", *conns, of); err != nil {
			return err
		}
	}
	for _, r := range []*revision{now, then} {
		if err := r.fill(ctx, *filed); err != nil {
			return err
		}
	}
	// A page is a hundred times the work of a vote: more at once would be longer than a pass.
	err := compared("pages of the queue", "queue", "official", 4, func(c *clients, _ *revision) action { return c.queue })
	figures.Print()
	return err
}

// compare runs both sides in turn, ours first, and returns what each made in a
// second, pass by pass. The first pass of each only warms up.
func compare(ctx context.Context, name, other string, sides [2]action) (rates [2][]float64, err error) {
	return compareOver(ctx, *conns, name, other, sides)
}

// compareOver compares over so many connections of each side.
func compareOver(ctx context.Context, conns int, name, other string, sides [2]action) (rates [2][]float64, err error) {
	for pass, side := range testbed.Turns(*passes+1, len(sides)) {
		n, err := closedLoop(ctx, conns, *passLength, sides[side])
		if err != nil {
			return rates, fmt.Errorf("%s: %w", name, err)
		}
		if pass > 0 {
			rates[side] = append(rates[side], float64(n)/passLength.Seconds())
		}
	}
	fmt.Printf("%-24s %s %7.0f/s   over HTTP %7.0f/s\n", name, other, stats.Median(rates[1]), stats.Median(rates[0]))
	return rates, nil
}
