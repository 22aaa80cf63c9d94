// Command wal measures what an event costs PostgreSQL: the bytes of the write-ahead log
// in both databases, by table, index and kind of record, and the processor time of the
// services' sessions.
//
// Both services run as they ship, on databases and a virtual host of their own. Residents
// file reports and vote, officials change statuses. Each kind of event has a turn of its
// own, which ends when every notification of it is written and the outbox has its marks.
// Images of whole pages are counted apart: their number depends on the last checkpoint.
// The rest hardly depends on how busy the machine is. The last line has the sums in the
// mix of the load test.
//
// -service, -notification and -migrate take the programs of another revision.
package main

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

var (
	events       = flag.Int("events", 3000, "events of each kind that are measured")
	conns        = flag.Int("conns", 16, "requests at the same time")
	detail       = flag.Float64("detail", 10, "print what costs at least so many bytes per event")
	service      = flag.String("service", "../../bin/report-service", "report-service's `program`")
	notification = flag.String("notification", "../../bin/notification-service", "notification-service's `program`")
	migrate      = flag.String("migrate", "../../bin/migrate", "the `program` that migrates")
)

func main() { testbed.Main(run) }

// kinds are the kinds of events; of ten events of the load test, share are of one.
var kinds = []struct {
	name  string
	share float64
	do    func(c *city, k int) error
}{
	{"create", 1, (*city).file},
	{"vote", 7, (*city).vote},
	{"status", 2, (*city).move},
}

func run(ctx context.Context, b *testbed.Bed) error {
	c, err := newCity(ctx, b)
	if err != nil {
		return err
	}
	for _, kind := range kinds { // so that tables have pages, and sessions plans
		if err := c.make(ctx, *events, kind.do); err != nil {
			return err
		}
	}
	var figures testbed.Figures
	var sum cost
	for _, kind := range kinds {
		before, err := c.meters(ctx)
		if err != nil {
			return err
		}
		if err := c.make(ctx, *events, kind.do); err != nil {
			return err
		}
		one, err := c.since(ctx, before)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s: %.0f bytes, %.0f µs\n", kind.name, one.wal[0]+one.wal[1], one.cpu)
		one.print()
		figures.Add("wal_"+kind.name, 0, one.wal[0]+one.wal[1])
		sum.add(one, kind.share/10)
	}
	figures.Add("wal_reports", 0, sum.wal[0])
	figures.Add("wal_notifications", 0, sum.wal[1])
	figures.Add("wal_per_event", 0, sum.wal[0]+sum.wal[1])
	figures.Add("page_images_per_event", 0, sum.images)
	figures.Add("cpu_us_per_event", 0, sum.cpu)
	var size float64
	err = c.databases[0].QueryRow(ctx, `select pg_total_relation_size('outbox_messages')::float8 / count(*) from outbox_messages`).Scan(&size)
	if err != nil {
		return fmt.Errorf("read the size of the outbox: %w", err)
	}
	figures.Add("outbox_bytes_per_row", 0, size)
	figures.Print()
	return nil
}

// make makes n events, and returns once both databases are done with them.
func (c *city) make(ctx context.Context, n int, do func(c *city, k int) error) error {
	var next atomic.Int64
	g, making := errgroup.WithContext(ctx)
	for range *conns {
		g.Go(func() error {
			for making.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= n {
					return nil
				}
				if err := do(c, k); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	c.made += n
	return c.settle(ctx)
}
