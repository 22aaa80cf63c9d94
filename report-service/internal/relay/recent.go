package relay

import (
	"math"
	"sync"
	"time"
)

const (
	// recentSeconds is how far back a recent looks for how long confirms took:
	// long enough for a p99 to mean something on a quiet day.
	recentSeconds = 60
	// rateSeconds is how far back it looks for the rate: short enough to show
	// that publishing has stopped.
	rateSeconds = 10
	// Confirms are counted in buckets of which each reaches a tenth further
	// than the one before, from finest to more than a minute. A percentile is
	// within five percent of what it was, and a second costs half a kilobyte.
	finest       = 100 * time.Microsecond
	growth       = 1.1
	recentBounds = 142
)

// A recent is what was published within the last minute, for a page to draw.
// Prometheus has the same by the scrape; this needs no Prometheus.
type recent struct {
	began time.Time

	mu      sync.Mutex
	seconds [recentSeconds]second // each takes the place of the one a minute before
}

// A second is what was published in one.
type second struct {
	number    int64 // since the beginning
	published int64
	confirms  [recentBounds]uint32 // by bucket; the last one takes all that is longer
}

func newRecent(now time.Time) *recent { return &recent{began: now} }

// published notes a message that a queue has taken, and how long the broker
// took for it.
func (r *recent) published(now time.Time, confirm time.Duration) {
	bucket := 0
	if confirm > finest {
		// Rounded up: bucket n ends at finest times growth to the n.
		steps := math.Ceil(math.Log(float64(confirm)/float64(finest)) / math.Log(growth))
		bucket = min(int(steps), recentBounds-1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	number := r.number(now)
	s := &r.seconds[number%recentSeconds]
	if s.number != number {
		*s = second{number: number}
	}
	s.published++
	s.confirms[bucket]++
}

func (r *recent) number(now time.Time) int64 { return int64(now.Sub(r.began) / time.Second) }

// figures returns the rate of the last ten seconds, and the median and the
// 99th percentile of the last minute's confirms; zero where nothing was
// published.
func (r *recent) figures(now time.Time) (perSecond float64, p50, p99 time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var published, total int64
	var confirms [recentBounds]int64
	present := r.number(now)
	for i := range r.seconds {
		s := &r.seconds[i]
		age := present - s.number
		if age <= rateSeconds {
			published += s.published
		}
		if age >= recentSeconds {
			continue
		}
		total += s.published
		for bucket, n := range s.confirms {
			confirms[bucket] += int64(n)
		}
	}
	// The present second is not over: only the part of it that has passed counts.
	span := rateSeconds + (now.Sub(r.began) % time.Second).Seconds()
	return float64(published) / span, quantile(confirms[:], total, 0.5), quantile(confirms[:], total, 0.99)
}

// quantile returns the middle of the bucket that holds the quantile q of total.
func quantile(buckets []int64, total int64, q float64) time.Duration {
	rank := int64(math.Ceil(q * float64(total)))
	for i, n := range buckets {
		if rank -= n; rank <= 0 && total > 0 {
			return time.Duration(float64(finest) * math.Pow(growth, float64(i)-0.5))
		}
	}
	return 0
}
