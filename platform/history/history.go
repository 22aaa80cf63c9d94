// Package history keeps what the replicas of a service counted in the last
// hours, so that operators' charts have a past at once, whichever replica
// answers.
//
// Each replica writes a row every Step: its counters' growth since its row before, and
// the levels that it saw. A row says which time it is about, by the database's clock.
// The sum over replicas is therefore right when one starts, which counts from nothing,
// and when one ends, which writes the rest. A killed replica takes with it the counts
// since its last row, Step at most. While the database is away nothing is lost: the
// next row is about the whole time.
//
// Nothing here is on the way of a request or of a message: counters are read
// that are there anyway, and a row goes for each that comes.
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// Step is how often a replica writes.
	Step = 10 * time.Second
	// Kept is for how long. With three replicas the table has some 6,500 rows.
	Kept = 6 * time.Hour
	// removed is when a row is deleted: later than any Read may need it.
	removed = Kept + 10*time.Minute
	// timeout ends a write to a database that does not answer.
	timeout = 5 * time.Second
	// settled is how long a step must be over until all replicas have written
	// their rows about it.
	settled = Step + 2*time.Second
	// maxSteps is about as many as a chart can show.
	maxSteps = 120
)

// Figures are what a replica reads of itself, by names that are shown.
type Figures struct {
	// Counters are totals since the process started. Of all replicas the sum is
	// shown, per second.
	Counters map[string]float64 `json:"counters,omitempty"`
	// Levels are of now: what all replicas see alike, as the length of a queue,
	// or what none may have too much of, as a latency. The highest of all
	// replicas is shown. A level that is not known is left out.
	Levels map[string]float64 `json:"levels,omitempty"`
}

// A Recorder writes the rows of one replica.
type Recorder struct {
	pool    *pgxpool.Pool
	read    func(context.Context) Figures
	log     zerolog.Logger
	replica uuid.UUID
	step    time.Duration // the constant, except in tests
}

// NewRecorder returns a Recorder of what read returns, in the table history of
// pool's database. The context that read gets ends when the row is late.
func NewRecorder(pool *pgxpool.Pool, read func(context.Context) Figures, log zerolog.Logger) *Recorder {
	return &Recorder{pool: pool, read: read, log: log, replica: uuid.New(), step: Step}
}

// Run writes until ctx ends, and then the rest. It has to end after the parts whose
// counters it reads.
func (r *Recorder) Run(ctx context.Context) error {
	var written map[string]float64 // the counters, at the last row
	since := time.Now()
	failing := false
	for more := true; more; {
		more = backoff.Sleep(ctx, r.step) == nil
		rowCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		now, figures := time.Now(), r.read(rowCtx)
		err := r.write(rowCtx, now.Sub(since), increases(written, figures))
		cancel()
		if err == nil {
			written, since = figures.Counters, now
		} else if !failing {
			r.log.Warn().Str("error", failure.Describe(err)).Msg("writing the history failed, the next row will be about this time too")
		}
		failing = err != nil
	}
	return nil
}

// increases returns figures with what their counters counted since before.
func increases(before map[string]float64, figures Figures) Figures {
	counted := make(map[string]float64, len(figures.Counters))
	for name, total := range figures.Counters {
		counted[name] = total - before[name]
	}
	return Figures{Counters: counted, Levels: figures.Levels}
}

// write writes the row about the time that took has passed of, and removes the
// rows that are too old.
func (r *Recorder) write(ctx context.Context, took time.Duration, figures Figures) error {
	row, err := json.Marshal(figures)
	if err != nil {
		return fmt.Errorf("encode history: %w", err)
	}
	return pgpool.Exec(ctx, r.pool, "write history", `
		with gone as (delete from history where until < now() - $4::interval)
		insert into history (replica, since, until, figures) values ($1, now() - $2::interval, now(), $3)`,
		r.replica, took, row, removed)
}

// A History is what all replicas counted, in steps of equal length, the earliest
// first. A value that is unknown in a step is NaN there.
type History struct {
	Since    time.Time // when the first step begins
	Step     time.Duration
	Replicas []int32              // how many there were
	Counters map[string][]float64 // per second
	Levels   map[string][]float64
}

// Read returns the history of the last span, which is Kept at most, in as many
// steps as a chart can show.
func Read(ctx context.Context, pool *pgxpool.Pool, span time.Duration) (History, error) {
	step := max(Step, (span / maxSteps).Truncate(Step))
	steps := int(span / step)
	var now time.Time
	all, err := pgpool.Collect(ctx, pool, "read history", func(each pgx.CollectableRow) (r row, err error) {
		err = each.Scan(&r.replica, &r.since, &r.until, &r.Figures, &now)
		return r, err
	}, `
		select replica, since, until, figures, now() from history
		where until > now() - $1::interval order by until, replica`, span+settled+step)
	if err != nil {
		return History{}, err
	}
	if len(all) == 0 {
		return History{Since: time.Now().Add(-span), Step: step, Replicas: []int32{}}, nil
	}
	end := now.Add(-settled).Truncate(Step)
	return sum(all, end.Add(-time.Duration(steps)*step), step, steps), nil
}

// A Run is a part of a series that is known without a gap.
type Run struct {
	From   int // the step of its first value
	Values []float64
}

// Runs returns the known values, with no more digits than say something.
func Runs(values []float64) []Run {
	var runs []Run
	for i, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if i == 0 || math.IsNaN(values[i-1]) {
			runs = append(runs, Run{From: i})
		}
		last := &runs[len(runs)-1]
		last.Values = append(last.Values, math.Round(v*1000)/1000)
	}
	return runs
}

type row struct {
	replica      uuid.UUID
	since, until time.Time
	Figures
}

// sum adds rows up. What a row counted is taken to have been counted evenly.
func sum(rows []row, since time.Time, step time.Duration, steps int) History {
	h := History{
		Since: since, Step: step, Replicas: make([]int32, steps),
		Counters: make(map[string][]float64), Levels: make(map[string][]float64),
	}
	present := make([]time.Duration, steps) // of all replicas together
	for _, r := range rows {
		r.since = earlier(r.since, r.until.Add(-time.Millisecond)) // a row is about some time
		for i := max(0, int(r.since.Sub(since)/step)); i < steps; i++ {
			begins := since.Add(time.Duration(i) * step)
			if !begins.Before(r.until) {
				break
			}
			shared := overlap(r.since, r.until, begins, begins.Add(step))
			if shared <= 0 {
				continue
			}
			present[i] += shared
			for name, counted := range r.Counters {
				add(h.Counters, name, i, steps, func(before float64) float64 {
					return before + counted*float64(shared)/float64(r.until.Sub(r.since))/step.Seconds()
				})
			}
			// A level is of the row's end. It is not known for all of a long time.
			if overlap(r.until.Add(-2*Step), r.until, begins, begins.Add(step)) > 0 {
				for name, level := range r.Levels {
					add(h.Levels, name, i, steps, func(before float64) float64 { return max(before, level) })
				}
			}
		}
	}
	for i, together := range present {
		h.Replicas[i] = int32(math.Round(float64(together) / float64(step)))
	}
	return h
}

// add changes the i-th of the values with the name, which is 0 if there was none.
func add(series map[string][]float64, name string, i, steps int, change func(before float64) float64) {
	values := series[name]
	if values == nil {
		values = make([]float64, steps)
		for i := range values {
			values[i] = math.NaN()
		}
		series[name] = values
	}
	if math.IsNaN(values[i]) {
		values[i] = 0
	}
	values[i] = change(values[i])
}

// overlap returns for how long both times are.
func overlap(since, until, otherSince, otherUntil time.Time) time.Duration {
	if otherSince.After(since) {
		since = otherSince
	}
	return earlier(until, otherUntil).Sub(since)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
