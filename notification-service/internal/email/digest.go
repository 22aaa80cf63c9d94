package email

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/schedule"
)

// A Frequency is how often a reader wants a digest.
type Frequency string

// The frequencies.
const (
	Off    Frequency = "off"
	Daily  Frequency = "daily"
	Weekly Frequency = "weekly"
)

// DefaultDigestAt is used where no time was chosen.
const DefaultDigestAt schedule.Clock = 7 * 60

// DigestSettings say when a reader is sent a digest, by the clock of their zone.
type DigestSettings struct {
	Frequency Frequency
	Weekday   time.Weekday   // of a weekly one
	At        schedule.Clock // of the day
}

// Next returns when the digest after the moment is due, and the day that it is
// of. It is the same at every replica: one local day has one digest, whatever is
// done to its clocks.
func (s DigestSettings) Next(after time.Time, zone *time.Location) (at time.Time, day string) {
	local := schedule.Local{At: s.At, Zone: zone}
	if s.Frequency == Weekly {
		local.Days = []time.Weekday{s.Weekday}
	}
	return local.Next(after)
}

// Zone returns a time zone by its name. The error is for the client, and blames
// /zone.
func Zone(name string) (*time.Location, error) {
	zone, err := schedule.Zone(name)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "/zone", Msg: "must be the name of a time zone such as Asia/Jakarta", Err: err}
	}
	return zone, nil
}

// digestBatch is how many due digests one transaction claims.
const digestBatch = 2000

// A Half is one of two parts of all streams, by their numbers. Each has a job of
// its own, which other replicas or processors work on beside the other.
type Half int

// The halves.
const (
	Even Half = 0
	Odd  Half = 1
)

// A DigestStore claims the digests that are due.
type DigestStore interface {
	// Count returns how many of a half are due.
	Count(ctx context.Context, tx pgx.Tx, half Half) (int64, error)
	// Claim writes a delivery for up to limit due digests of a half that
	// are not empty, each due at a moment of its own within spread, and sets when
	// the next ones are. It returns how many it claimed, empty ones included.
	Claim(ctx context.Context, tx pgx.Tx, half Half, limit int, spread time.Duration) (claimed int, err error)
}

// DigestJobs returns the jobs that claim due digests. Each step is one transaction:
// the mail and the numbers that it is about are written with the next date, so
// that none is claimed twice and none is left out. Over the spread the mails of one
// moment are sent: a digest at seven o'clock is sent between then and half past, so
// that the mail server is not given the whole city in one second.
func DigestJobs(store DigestStore, spread time.Duration) []schedule.Job {
	return []schedule.Job{digestJob("digests_even", Even, store, spread), digestJob("digests_odd", Odd, store, spread)}
}

func digestJob(name string, half Half, store DigestStore, spread time.Duration) schedule.Job {
	return schedule.Job{
		Name: name, When: schedule.Every(time.Minute),
		Step: func(ctx context.Context, tx pgx.Tx, run schedule.Run) (schedule.Progress, error) {
			progress := schedule.Progress{Cursor: json.RawMessage(`{}`)}
			if run.Cursor == nil { // the first step
				var err error
				if progress.Total, err = store.Count(ctx, tx, half); err != nil {
					return progress, err
				}
			}
			// A step that failed, perhaps for its time, takes less.
			limit := max(1, digestBatch>>min(run.Failures, 10))
			claimed, err := store.Claim(ctx, tx, half, limit, spread)
			if err != nil {
				return progress, fmt.Errorf("claim digests: %w", err)
			}
			progress.Done, progress.Last = int64(claimed), claimed < limit
			return progress, nil
		},
	}
}
