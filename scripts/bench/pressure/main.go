// Command pressure measures a whole stack while others press on its databases: beside a
// transaction that is held, as pg_dump holds one, so that no dead row goes away; beside
// readers that overlap; and at a higher rate. People file reports and vote for one popular
// report all the time, each request when it is due. scripts/bench-stack.sh starts a
// stack for it.
//
// The last line has the figures as name=value. A ratio compares a phase to the first one,
// which is clean: creates, votes, what the relay has published and what the consumers have
// handled, each for a second; and the 99th percentile of the answers. After is the same a
// minute after the phase.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

var (
	gateway       = flag.String("gateway", "", "`address` of the stack")
	reports       = flag.String("reports", "", "`file` with the URL of the reports' database, as its owner")
	notifications = flag.String("notifications", "", "the same of the notifications' database")
	rate          = flag.Float64("rate", 20, "reports, and as many votes, a second")
	span          = flag.Duration("span", time.Minute, "how long a phase is measured, at its end")
	held          = flag.Duration("held", 20*time.Minute, "how long a transaction is held")
	reading       = flag.Duration("reading", 2*time.Minute, "how long each reader reads, of which four overlap")
	more          = flag.Float64("more", 1.5, "how much higher the higher rate is")
)

const (
	people    = 100
	recovery  = time.Minute     // after which all is as it was
	settled   = 5 * time.Minute // how long the messages may take at most
	poll      = 100 * time.Millisecond
	overlap   = 4 // readers
	hotTables = 5 // of a database, whose dead rows are shown
)

// A Pressure is one kind of it.
type pressure struct {
	name   string
	factor float64       // of the rate
	lasts  time.Duration // before the end of what is measured
	press  func(ctx context.Context, b *bench) error
}

// A sample is what was counted in a span.
type sample struct {
	done      map[string]float64 // in a second
	p99       map[string]float64 // milliseconds
	failed    int
	dead      string // rows of the tables that have the most
	deadTotal int64
}

type bench struct {
	people   []*client.Client
	popular  uuid.UUID
	other    int32 // a category
	db       []*pgx.Conn
	urls     []string
	votes    atomic.Int64
	accepted atomic.Int64 // requests, each with a message
	figures  testbed.Figures
}

func main() { testbed.Main(run) }

func run(ctx context.Context, bed *testbed.Bed) error {
	b := &bench{}
	if err := b.prepare(ctx, bed); err != nil {
		return err
	}
	if _, err := b.measure(ctx, 1, *span/4); err != nil { // warm up
		return err
	}
	clean, err := b.measure(ctx, 1, *span)
	if err != nil {
		return err
	}
	b.show("clean", clean, clean)
	for _, p := range []pressure{
		{"held", 1, *held, hold},
		{"readers", 1, *reading, read},
		{"more", *more, *span, func(ctx context.Context, _ *bench) error { <-ctx.Done(); return nil }},
	} {
		if err := b.underPressure(ctx, p, clean); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	b.figures.Print()
	return nil
}

// prepare signs people in and files the popular report.
func (b *bench) prepare(ctx context.Context, bed *testbed.Bed) error {
	for _, file := range []string{*reports, *notifications} {
		url, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the database's URL: %w", err)
		}
		b.urls = append(b.urls, strings.TrimSpace(string(url)))
		conn, err := pgx.Connect(ctx, b.urls[len(b.urls)-1])
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		bed.Defer(func() error { return conn.Close(context.WithoutCancel(ctx)) })
		b.db = append(b.db, conn)
	}
	address := strings.TrimSuffix(*gateway, "/") // as scripts/stack prints it
	for i := range people {
		who, err := client.New(address).SignIn(ctx, fmt.Sprint("Resident ", i), "resident", "")
		if err != nil {
			return fmt.Errorf("sign in (the stack needs AUTH_MODE=dev): %w", err)
		}
		b.people = append(b.people, who)
	}
	categories, err := b.people[0].Categories(ctx)
	if err != nil {
		return fmt.Errorf("read the categories: %w", err)
	}
	b.other = categories[client.OtherCategory]
	report, err := b.file(ctx, 0)
	b.popular = report.ID
	b.accepted.Add(1)
	return err
}

func (b *bench) file(ctx context.Context, n int) (client.Report, error) {
	box := testbed.City
	at := float64(n%997) / 997
	longitude, latitude := box[0]+at*(box[2]-box[0]), box[1]+at*(box[3]-box[1])
	return b.people[n%people].CreateReport(ctx, client.NewReport{
		Title: "Dark lamp", Description: "Dark since some days, and nobody came.", CategoryID: b.other,
		Latitude: &latitude, Longitude: &longitude, Address: "Jalan Salak 7", PrivacyLevel: "public",
	})
}

// vote changes somebody's vote on the popular report each time: a vote that changes
// nothing makes no message.
func (b *bench) vote(ctx context.Context) error {
	n := int(b.votes.Add(1) - 1)
	who := b.people[1+n%(people-1)] // nobody votes on their own report
	_, err := who.Vote(ctx, b.popular, []string{"upvote", "downvote"}[n/(people-1)%2])
	return err
}

// underPressure measures the end of a phase, and the time after it.
func (b *bench) underPressure(ctx context.Context, p pressure, clean sample) error {
	pressing, end := context.WithCancel(ctx)
	defer end()
	var failed error
	var underWay sync.WaitGroup
	underWay.Go(func() { failed = p.press(pressing, b) })
	before, stop := context.WithTimeout(pressing, p.lasts-*span)
	b.load(before, p.factor, new(answers))
	stop()
	during, err := b.measure(ctx, p.factor, *span)
	end()
	underWay.Wait()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	b.show(p.name, during, clean.times(p.factor))
	rest, stop := context.WithTimeout(ctx, recovery)
	b.load(rest, 1, new(answers))
	stop()
	after, err := b.measure(ctx, 1, *span)
	if err != nil {
		return err
	}
	b.show(p.name+"_after", after, clean)
	return nil
}

// Answers are what the requests of a span took.
type answers struct {
	mu     sync.Mutex
	took   map[string][]float64 // milliseconds since each was due
	failed int
}

func (b *bench) note(a *answers, kind string, due time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.failed++
		return
	}
	b.accepted.Add(1)
	if a.took == nil {
		a.took = make(map[string][]float64)
	}
	a.took[kind] = append(a.took[kind], float64(time.Since(due).Microseconds())/1000)
}

// load makes the requests until ctx ends, and returns once all are answered.
func (b *bench) load(ctx context.Context, factor float64, a *answers) {
	every := time.Duration(float64(time.Second) / (*rate * factor))
	work := context.WithoutCancel(ctx)
	var loading sync.WaitGroup
	loading.Go(func() {
		testbed.OpenLoop(ctx, every, func(_ int, due time.Time) { b.note(a, "votes", due, b.vote(work)) })
	})
	testbed.OpenLoop(ctx, every, func(n int, due time.Time) { _, err := b.file(work, n); b.note(a, "creates", due, err) })
	loading.Wait()
}

// measure counts what is done in a span. What is published and handled ends with the last
// of it: a relay that falls behind takes longer.
func (b *bench) measure(ctx context.Context, factor float64, span time.Duration) (s sample, err error) {
	if _, _, err := b.drain(ctx); err != nil {
		return s, err
	}
	var a answers
	began := time.Now()
	during, stop := context.WithTimeout(ctx, span)
	defer stop()
	b.load(during, factor, &a)
	loaded := time.Since(began).Seconds()
	relayed, consumed, err := b.drain(ctx)
	if err != nil {
		return s, err
	}
	events := float64(len(a.took["creates"]) + len(a.took["votes"]))
	s = sample{failed: a.failed, p99: make(map[string]float64), done: map[string]float64{
		"relay": events / relayed.Sub(began).Seconds(), "consumer": events / consumed.Sub(began).Seconds(),
	}}
	for kind, took := range a.took {
		s.done[kind], s.p99[kind] = float64(len(took))/loaded, stats.Percentile(took, 99)
	}
	s.dead, s.deadTotal, err = b.deadRows(ctx)
	return s, err
}

// drain returns when the message of each request so far was published, and handled.
func (b *bench) drain(ctx context.Context) (relayed, consumed time.Time, err error) {
	for began := time.Now(); relayed.IsZero() || consumed.IsZero(); time.Sleep(poll) {
		var published, handled int64
		err := b.db[0].QueryRow(ctx, `select count(*) from outbox_messages where status = 'published'`).Scan(&published)
		if err == nil {
			err = b.db[1].QueryRow(ctx, `select count(*) from processed_messages where consumer in ('queue.report_created', 'queue.vote_received')`).Scan(&handled)
		}
		if err != nil {
			return relayed, consumed, fmt.Errorf("count messages: %w", err)
		}
		if relayed.IsZero() && published >= b.accepted.Load() {
			relayed = time.Now()
		}
		if consumed.IsZero() && handled >= b.accepted.Load() {
			consumed = time.Now()
		}
		if time.Since(began) > settled {
			return relayed, consumed, fmt.Errorf("of %d messages %d are published and %d handled", b.accepted.Load(), published, handled)
		}
	}
	return relayed, consumed, nil
}

// times returns s at another rate.
func (s sample) times(factor float64) sample {
	done := make(map[string]float64)
	for kind, n := range s.done {
		done[kind] = factor * n
	}
	return sample{done: done, p99: s.p99}
}

// deadRows names the tables with the most dead rows.
func (b *bench) deadRows(ctx context.Context) (text string, total int64, err error) {
	for _, db := range b.db {
		rows, err := db.Query(ctx, `select relname, n_dead_tup from pg_stat_user_tables order by n_dead_tup desc limit $1`, hotTables)
		if err != nil {
			return "", 0, fmt.Errorf("read dead rows: %w", err)
		}
		var table string
		var dead int64
		if _, err := pgx.ForEachRow(rows, []any{&table, &dead}, func() error {
			total += dead
			text += fmt.Sprintf(" %s=%d", table, dead)
			return nil
		}); err != nil {
			return "", 0, fmt.Errorf("read dead rows: %w", err)
		}
	}
	return text, total, nil
}

// show prints a phase, and adds its ratios to the figures.
func (b *bench) show(name string, s, clean sample) {
	fmt.Printf("%-14s failed=%d dead rows:%s\n", name, s.failed, s.dead)
	for _, kind := range []string{"creates", "votes", "relay", "consumer"} {
		ratio := s.done[kind] / cmp.Or(clean.done[kind], 1)
		fmt.Printf("  %-9s %8.1f/s  ratio %.2f", kind, s.done[kind], ratio)
		b.figures.Add(name+"_"+kind+"_ratio", 2, ratio)
		if p99, ok := s.p99[kind]; ok {
			fmt.Printf("   p99 %8.1f ms  ratio %.2f", p99, p99/clean.p99[kind])
			b.figures.Add(name+"_"+kind+"_p99_ratio", 2, p99/clean.p99[kind])
		}
		fmt.Println()
	}
	b.figures.Add(name+"_dead_rows", 0, float64(s.deadTotal))
	b.figures.Add(name+"_failed", 0, float64(s.failed))
}

// hold keeps a transaction in each database until ctx ends, whose snapshot sees all rows
// of before.
func hold(ctx context.Context, b *bench) error {
	for _, url := range b.urls {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		if _, err := conn.Exec(ctx, `begin isolation level repeatable read; select count(*) from pg_class`); err != nil {
			return fmt.Errorf("hold a transaction: %w", err)
		}
	}
	<-ctx.Done()
	return nil
}

// read has four readers with a transaction each, of which one begins when another is half
// through, so that there is always an old snapshot, and none is old for long.
func read(ctx context.Context, b *bench) error {
	var readers sync.WaitGroup
	defer readers.Wait()
	errs := make(chan error, overlap)
	for i := range overlap {
		readers.Go(func() {
			for wait := time.Duration(i) * *reading / overlap; ; wait = 0 {
				select {
				case <-ctx.Done():
					return
				case <-time.After(wait):
				}
				one, end := context.WithTimeout(ctx, *reading)
				err := hold(one, b)
				end()
				if err != nil && ctx.Err() == nil {
					errs <- err
					return
				}
			}
		})
	}
	select {
	case err := <-errs:
		return err
	case <-ctx.Done():
		return nil
	}
}
