// Command delays measures messages that wait until a time: how fast they are
// parked, and how late they have their effect, with nothing else waiting and
// with a million others. Beside it the same messages wait in binary delay levels
// as NServiceBus has them, which need nothing but the broker: one queue for each
// power of two seconds, and the delay in the routing key.
//
// Lateness is from when a message was due to its effect, in the clock of this
// process, which publishes and consumes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "delays:", err)
		os.Exit(1)
	}
}

// A bench is what the command line says, and what it is measured on.
type bench struct {
	messages int
	spread   time.Duration // over which the messages are due
	others   int           // messages that wait beside them
	pool     *pgxpool.Pool
}

// A result is what one contestant did.
type result struct {
	name     string
	intake   float64 // messages a second, until all were waiting
	p50, p99 float64 // milliseconds late
}

func newResult(name string, messages int, took time.Duration, late []float64) result {
	return result{name, float64(messages) / took.Seconds(), stats.Percentile(late, 50), stats.Percentile(late, 99)}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	b := new(bench)
	flags := flag.NewFlagSet("delays", flag.ContinueOnError)
	flags.IntVar(&b.messages, "messages", 20_000, "messages that wait")
	flags.DurationVar(&b.spread, "spread", 15*time.Second, "over which the messages are due, whole seconds")
	flags.IntVar(&b.others, "others", 1_000_000, "messages that wait for days beside them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	database, drop, err := testbed.Database(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := migrations.Up(ctx, database, migrations.Notification); err != nil {
		return err
	}
	if b.pool, err = pgpool.Open(ctx, database, "bench"); err != nil {
		return err
	}
	defer b.pool.Close()

	alone, err := b.rows(ctx, "rows")
	if err != nil {
		return err
	}
	levels, err := b.levels(ctx)
	if err != nil {
		return err
	}
	if err := b.wait(ctx); err != nil {
		return err
	}
	among, err := b.rows(ctx, fmt.Sprintf("rows, %d others wait", b.others))
	if err != nil {
		return err
	}

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "contestant\tintake/s\tlate p50 ms\tlate p99 ms\t")
	for _, r := range []result{alone, among, levels} {
		fmt.Fprintf(table, "%s\t%.0f\t%.1f\t%.1f\t\n", r.name, r.intake, r.p50, r.p99)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "parked_per_s=%.0f late_p50_ms=%.1f late_p99_ms=%.1f late_p99_1m_ms=%.1f levels_late_ratio=%.1f\n",
		alone.intake, alone.p50, alone.p99, among.p99, levels.p50/alone.p50)
	return err
}

// wait lets other messages wait.
func (b *bench) wait(ctx context.Context) error {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `set statement_timeout = 0`); err != nil {
		return fmt.Errorf("let others wait: %w", err)
	}
	_, err = conn.Exec(ctx, `
		insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
		select 'queue.others', gen_random_uuid(), 'report.vote.received', now() + interval '1 day' + n * interval '1 s',
		  convert_to(repeat('x', 300), 'UTF8'), '{}', '{}' from generate_series(1, $1) n`, b.others)
	if err != nil {
		return fmt.Errorf("let others wait: %w", err)
	}
	if _, err := conn.Exec(ctx, `vacuum analyze delayed_messages`); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	return nil
}
