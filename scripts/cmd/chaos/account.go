//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

const (
	// late is when a notification counts as held up.
	late = time.Second
	// calm is for how long nothing may be late before the next fault.
	calm = time.Second
	// restless is how long a busy machine may take to come to rest, where everything is
	// a little late all the time. Then it is enough that nothing waits that was asked
	// for when the fault was over.
	restless = 30 * time.Second
	// recoverWithin is when a fault counts as one that the stack does not get over.
	recoverWithin = 15 * time.Minute
	// readWithin is for how long a question is repeated when all is over: a busy machine
	// refuses some, and one that is refused says nothing about what was lost.
	readWithin    = 2 * time.Minute
	readersAtOnce = 8
)

// A recovery says how long a fault was felt, from its beginning.
type recovery struct {
	kind string
	// up is when what was broken runs again.
	up time.Duration
	// first is when something that was asked for after the fault was on a screen,
	// full when the last notification that was held up was.
	first, full time.Duration
}

// fault breaks something and waits until nothing is late.
func (t *town) fault(ctx context.Context, s *stack, name string, random *rand.Rand) (recovery, error) {
	began := time.Now()
	t.watchAfter(began)
	t.lights.breaks()
	if err := s.kinds[name](ctx, s, random); err != nil {
		return recovery{}, err
	}
	t.lights.mended()
	r := recovery{kind: name, up: time.Since(began)}
	restored := time.Now()
	for {
		select {
		case err := <-t.screens.Lost():
			return r, err
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		first, oldest, lateAt := t.progress()
		rest := time.Since(oldest) <= late && time.Since(lateAt) > calm && time.Since(restored) > calm
		over := oldest.After(restored.Add(calm)) && time.Since(restored) > restless
		if !first.IsZero() && (rest || over) {
			r.first = first.Sub(began)
			if lateAt.After(began) {
				r.full = lateAt.Sub(began)
			}
			return r, nil
		}
		if time.Since(restored) > recoverWithin {
			return r, fmt.Errorf("%v after it was over, a notification is %v late", recoverWithin, time.Since(oldest).Round(time.Second))
		}
	}
}

// watchAfter has progress speak of what is asked for after the moment.
func (t *town) watchAfter(moment time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moment, t.first = moment, time.Time{}
}

// progress returns when something that was asked for after the moment was first
// shown, when the oldest of what waits was asked for, or now, and when the last one
// that waited longer than it should was shown.
func (t *town) progress() (first, oldest, lateAt time.Time) {
	oldest = t.ledger.Oldest()
	t.mu.Lock()
	defer t.mu.Unlock()
	for asked := range t.asking {
		if asked.Before(oldest) {
			oldest = *asked
		}
	}
	return t.first, oldest, t.lateAt
}

// A sum is the account of a whole run.
type sum struct {
	accepted, expected, once, lost, doubled int
	// unasked versions come from requests that were given up and repeated, and
	// took effect all the same. Each was shown once like any other.
	unasked int
	photos  verdicts
	stories stories
	streams ssetest.Count
	repeats int
	errors  []error // answers with status 500
}

// verdicts are what became of the photos that were accepted. Those that are
// neither ready nor refused are lost. Misjudged are sound ones that were refused,
// and others that were not.
type verdicts struct{ accepted, ready, refused, misjudged int }

// settle waits until everything is shown, and sums up. What has to be shown
// follows from the versions that the reports have now.
func (t *town) settle(ctx context.Context) (sum, error) {
	photos, err := t.settlePhotos(ctx)
	if err != nil {
		return sum{}, err
	}
	versions, err := t.versions(ctx)
	if err != nil {
		return sum{}, err
	}
	t.expectAll(versions)
	settling, cancel := context.WithTimeout(ctx, settleWithin)
	t.ledger.Settle(settling.Done())
	cancel()
	err = wait.For(ctx, 2*calm) // what comes twice may come late
	s := t.sum(versions)
	s.photos = photos
	if err == nil {
		s.stories, err = t.readStories(ctx, versions)
	}
	return s, err
}

// read reads what is at path into out. A server error is repeated for a while, unless it
// is the service's own.
func read(ctx context.Context, c *client.Client, path string, out any) error {
	for began := time.Now(); ; {
		err := c.Do(ctx, http.MethodGet, path, nil, out)
		if client.StatusOf(err) <= http.StatusInternalServerError || time.Since(began) > readWithin {
			return err
		}
		if err := wait.For(ctx, time.Second); err != nil {
			return err
		}
	}
}

// expectAll expects every version of the reports: its reporter gets each but the
// first, which the official gets.
func (t *town) expectAll(versions map[*report]int64) {
	for r, version := range versions {
		t.expect(t.official, r.id, 1, time.Now())
		for v := int64(2); v <= version; v++ {
			t.expect(r.owner, r.id, v, time.Now())
		}
	}
}

// versions reads all reports. The reports are many after a long run.
func (t *town) versions(ctx context.Context) (map[*report]int64, error) {
	versions := make([]int64, len(t.reports))
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(readersAtOnce)
	for i, r := range t.reports {
		readers.Go(func() error {
			var now client.Report
			if err := read(ctx, t.official.Client, "/reports/"+r.id.String(), &now); err != nil {
				return fmt.Errorf("read a report: %w", err)
			}
			versions[i] = now.Version
			return nil
		})
	}
	if err := readers.Wait(); err != nil {
		return nil, err
	}
	of := make(map[*report]int64, len(versions))
	for i, r := range t.reports {
		of[r] = versions[i]
	}
	return of, nil
}

// settlePhotos waits until every photo has its verdict, and counts them. Each that
// got ready is a change of its report.
func (t *town) settlePhotos(ctx context.Context) (verdicts, error) {
	deadline := time.Now().Add(settleWithin)
	for {
		v := verdicts{accepted: len(t.photos)}
		changes := make(map[*report]int64)
		for _, r := range t.reports {
			if r.photos == 0 {
				continue
			}
			var list struct {
				Photos []struct {
					ID    uuid.UUID
					State string
				}
			}
			if err := read(ctx, t.official.Client, "/reports/"+r.id.String()+"/photos", &list); err != nil {
				return v, fmt.Errorf("list the photos of a report: %w", err)
			}
			for _, listed := range list.Photos {
				sent := t.photos[listed.ID]
				switch {
				case sent.report != r: // accepted by nobody
					continue
				case listed.State == "ready":
					v.ready++
					changes[r]++
				case listed.State == "refused":
					v.refused++
				default:
					continue
				}
				if sent.sound != (listed.State == "ready") {
					v.misjudged++
				}
			}
		}
		if v.ready+v.refused == v.accepted || time.Now().After(deadline) {
			for r, n := range changes {
				r.accepted += n
			}
			return v, nil
		}
		if err := wait.For(ctx, time.Second); err != nil {
			return v, err
		}
	}
}

func (t *town) sum(versions map[*report]int64) sum {
	tally := t.ledger.Tally()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := sum{
		expected: int(tally.Expected), once: int(tally.Once), lost: int(tally.Lost), doubled: int(tally.Doubled),
		streams: t.screens.Count(), repeats: t.repeats, errors: t.errors,
	}
	for r, version := range versions {
		s.accepted += int(r.accepted)
		s.lost += max(0, int(r.accepted-version)) // accepted, and not even stored
		s.unasked += max(0, int(version-r.accepted))
	}
	return s
}

// good reports whether the promise was kept.
func (s sum) good() bool {
	return s.expected > 0 && s.once == s.expected && s.lost == 0 && s.doubled == 0 &&
		s.photos.ready+s.photos.refused == s.photos.accepted && s.photos.misjudged == 0 && s.stories.incomplete == 0 &&
		s.streams.Missing == 0 && s.streams.Doubled == 0 && s.streams.OutOfOrder == 0 && len(s.errors) == 0
}

// String returns the line that other programs read.
func (s sum) String() string {
	return fmt.Sprintf("accepted=%d expected=%d once=%d lost=%d doubled=%d out_of_order=%d unasked=%d repeats=%d errors_500=%d photos=%d ready=%d refused=%d misjudged=%d %s",
		s.accepted, s.expected, s.once, s.lost, s.doubled, s.streams.OutOfOrder, s.unasked, s.repeats, len(s.errors),
		s.photos.accepted, s.photos.ready, s.photos.refused, s.photos.misjudged, s.stories)
}

// printRecoveries prints the median and the longest of each kind.
func printRecoveries(out io.Writer, all []recovery) {
	slices.SortFunc(all, func(a, b recovery) int { return cmp.Compare(a.kind, b.kind) })
	fmt.Fprintf(out, "\n%-25s %3s %16s %16s %16s %16s\n", "seconds, p50 / max", "n", "up again", "first shown", "all shown", "after up again")
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].kind == all[0].kind {
			n++
		}
		column := func(of func(recovery) time.Duration) string {
			var values []time.Duration
			for _, r := range all[:n] {
				values = append(values, max(0, of(r)))
			}
			return fmt.Sprintf("%.1f / %.1f", stats.Median(values).Seconds(), slices.Max(values).Seconds())
		}
		fmt.Fprintf(out, "%-25s %3d %16s %16s %16s %16s\n", all[0].kind, n,
			column(func(r recovery) time.Duration { return r.up }), column(func(r recovery) time.Duration { return r.first }),
			column(func(r recovery) time.Duration { return r.full }), column(func(r recovery) time.Duration { return r.full - r.up }))
		all = all[n:]
	}
	fmt.Fprintln(out)
}
