// Command city measures how report-service answers in a city with many reports:
// the map of any area, the officials' queue by filter and order with its counts,
// the export of all, and what everybody else waits for while one address makes as many
// guests who file as it can, through the real binary. The broker is away, so that nothing is
// published at the same time.
//
// The last line has the figures as name=value. Times are in milliseconds, from
// request to the last byte, one request at a time except in the last part.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

var (
	reports = flag.Int("reports", 100_000, "reports of the city")
	rounds  = flag.Int("rounds", 25, "requests of each kind")
	turns   = flag.Int("turns", 3, "turns with and without a flood")
	turn    = flag.Duration("turn", 20*time.Second, "how long each of them is")
	only    = flag.String("only", "", "measure only this `part`: answers, areas or guests")
	binary  = flag.String("service", "../../bin/report-service", "report-service's `program`")
	migrate = flag.String("migrate", "../../bin/migrate", "the `program` that migrates")
)

// officials are how many ask in turn: one alone would wait for what requests cost, a
// tenth of a processor for each caller, instead of for the answers.
const officials = 1000

// areas are how many parts the city is divided into.
const areas = 200

// A bench is what is measured, and who asks it.
type bench struct {
	service *testbed.ReportService
	tokens  []string // of officials, who ask in turn
	next    int      // the one whose turn it is
	figures testbed.Figures
}

func main() { testbed.Main(run) }

func run(ctx context.Context, bed *testbed.Bed) error {
	b := &bench{}
	// The program migrates, not this module: it may be of another revision.
	database, err := bed.Migrated(ctx, *migrate, migrations.Report)
	if err != nil {
		return err
	}
	if err := testbed.Populate(ctx, database, *reports); err != nil {
		return err
	}
	if b.service, err = bed.ReportService(ctx, *binary, database); err != nil {
		return err
	}
	for i := range officials {
		token, err := b.service.Token(fmt.Sprintf("official-%d", i+1), "official")
		if err != nil {
			return fmt.Errorf("sign a token: %w", err)
		}
		b.tokens = append(b.tokens, token)
	}
	for _, part := range []struct {
		name    string
		measure func(context.Context) error
	}{{"answers", b.measure}, {"areas", b.locate}, {"guests", b.flood}} {
		if *only != "" && *only != part.name {
			continue
		}
		if err := part.measure(ctx); err != nil {
			return err
		}
	}
	b.figures.Print()
	return nil
}

// add adds a figure to the last line, and prints it.
func (b *bench) add(name string, value float64) {
	b.figures.Add(name, 1, value)
	fmt.Printf("%-28s %8.1f\n", name, value)
}

// measure makes all requests and prints what they took.
func (b *bench) measure(ctx context.Context) error {
	var screens []string
	for range *rounds {
		for zoom := 10; zoom <= 17; zoom++ {
			screens = append(screens, testbed.Screen(zoom))
		}
	}
	took, err := b.time(ctx, screens)
	if err != nil {
		return err
	}
	b.add("map_p50_ms", stats.Median(took))
	b.add("map_p99_ms", stats.Percentile(took, 99))
	for _, request := range []struct{ name, path string }{
		{"map_whole_p50_ms", whole("")}, {"map_whole_open_p50_ms", whole("&status=pending&status=in_progress")},
		{"map_whole_words_p50_ms", whole("&q=lamp")}, {"counts_p50_ms", "/reports/queue/counts"},
	} {
		took, err := b.time(ctx, slices.Repeat([]string{request.path}, *rounds))
		if err != nil {
			return err
		}
		b.add(request.name, stats.Median(took))
	}
	if err := b.queue(ctx); err != nil {
		return err
	}
	return b.exports(ctx)
}

// locate uploads areas, and says how long the job took that sorts all reports into them.
func (b *bench) locate(ctx context.Context) error {
	if err := b.service.SetAreas(ctx, areas, testbed.City); err != nil {
		return err
	}
	const schedules = "/admin/reports/schedules"
	for {
		var all struct {
			Schedules []struct {
				Name   string
				Latest struct {
					Done      float64
					StartedAt time.Time `json:"started_at"`
					EndedAt   time.Time `json:"ended_at"`
				}
			}
		}
		if err := b.service.Operate(ctx, http.MethodGet, schedules, "", nil, &all); err != nil {
			return err
		}
		for _, s := range all.Schedules {
			if run := s.Latest; s.Name == "areas" && run.Done > 0 && !run.EndedAt.IsZero() {
				b.add("areas_located", run.Done)
				b.add("areas_locate_s", run.EndedAt.Sub(run.StartedAt).Seconds())
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// queue asks for the officials' queue by many filters, in every order.
func (b *bench) queue(ctx context.Context) error {
	slowest, which := 0.0, ""
	var all []float64
	for _, filter := range []string{
		"", "status=pending", "status=pending&status=in_progress", "status=resolved", "category=3", "status=pending&category=3&category=4", "department=2",
		"assignee=official-3", "assignee=none", "status=pending&status=in_progress&assignee=none", "q=lamp", "q=salak+199",
	} {
		for _, order := range []string{"newest", "oldest", "changed", "score", "due"} {
			path := "/reports/queue?limit=50&order=" + order + "&" + filter
			took, err := b.time(ctx, slices.Repeat([]string{path}, *rounds))
			if err != nil {
				return err
			}
			all = append(all, took...)
			if p50 := stats.Median(took); p50 > slowest {
				slowest, which = p50, order+" "+filter
			}
		}
	}
	b.add("queue_p50_ms", stats.Median(all))
	b.add("queue_slowest_p50_ms", slowest)
	fmt.Println("slowest:", which)
	return nil
}

func whole(filter string) string {
	return fmt.Sprintf("/map/points?zoom=12&bbox=%g,%g,%g,%g%s", testbed.City[0], testbed.City[1], testbed.City[2], testbed.City[3], filter)
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

// get reads an answer as the next official, and returns how many bytes it has.
func (b *bench) get(ctx context.Context, path string) (int64, error) {
	b.next = (b.next + 1) % len(b.tokens)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.service.Addr+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+b.tokens[b.next])
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

// exports reads all reports in each form, and says how much more memory that took than
// the service had before.
func (b *bench) exports(ctx context.Context) error {
	pid := b.service.Cmd.Process.Pid
	for _, e := range []struct{ name, path string }{
		{"export", "/reports/export"}, {"open_csv", "/open-data/reports.csv"}, {"open_geojson", "/open-data/reports.geojson"},
	} {
		before, began := proc.Memory(pid, "VmRSS"), time.Now()
		n, err := b.get(ctx, e.path)
		if err != nil {
			return err
		}
		b.add(e.name+"_s", time.Since(began).Seconds())
		b.add(e.name+"_mib", float64(n)/(1<<20))
		b.add(e.name+"_growth_mib", float64(max(0, proc.Memory(pid, "VmHWM")-before))/(1<<20))
	}
	return nil
}
