package consumer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/metric"
)

// An ackLog is a channel's end of the acknowledgements. It knows what was
// acknowledged, and fails the test if that was not done before. The tracker's
// lock is its lock.
type ackLog struct {
	t      *testing.T
	open   []uint64
	done   map[uint64]bool
	frames int
}

func (a *ackLog) Ack(tag uint64, multiple bool) error {
	a.frames++
	a.open = slices.DeleteFunc(a.open, func(open uint64) bool {
		covered := open == tag || multiple && open < tag
		if covered && !a.done[open] {
			a.t.Errorf("%d was acknowledged with %d (multiple: %v), and is not done", open, tag, multiple)
		}
		return covered
	})
	return nil
}

func (a *ackLog) Nack(uint64, bool, bool) error { panic("a tracker refuses nothing") }
func (a *ackLog) Reject(uint64, bool) error     { panic("a tracker refuses nothing") }

type ackHarness struct {
	ackTracker
	log     *ackLog
	handled metric.Rate
}

func newAckHarness(t *testing.T) *ackHarness {
	h := &ackHarness{log: &ackLog{t: t, done: make(map[uint64]bool)}}
	h.ackTracker = ackTracker{acknowledger: h.log, handled: &h.handled, acked: newMetrics(prometheus.NewRegistry()).acked.WithLabelValues("q")}
	return h
}

func (h *ackHarness) come(tags ...uint64) []*job {
	var jobs []*job
	for _, tag := range tags {
		jobs = append(jobs, &job{d: &amqp.Delivery{DeliveryTag: tag}})
	}
	h.locked(func() { h.log.open = append(h.log.open, tags...) })
	h.track(jobs)
	return jobs
}

func (h *ackHarness) finish(jobs ...*job) {
	h.locked(func() {
		for _, j := range jobs {
			h.log.done[j.d.DeliveryTag] = true
		}
	})
	h.done(jobs...)
}

func (h *ackHarness) locked(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *ackHarness) want(what string, open, frames int) {
	h.log.t.Helper()
	known := h.pending()
	h.locked(func() {
		if len(h.log.open) != open || known != open || h.log.frames != frames {
			h.log.t.Errorf("%s: %d open, %d of them pending, after %d frames; want %d after %d",
				what, len(h.log.open), known, h.log.frames, open, frames)
		}
	})
}

func TestAckTrackerSavesFrames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newAckHarness(t)
		h.finish(h.come(1, 2, 3)...)
		h.want("all done", 0, 1)

		jobs := h.come(4, 5, 6, 7, 8)
		h.finish(jobs[0], jobs[1], jobs[3], jobs[4])
		h.want("one on its way to a retry", 3, 2)
		h.finish(jobs[2])
		h.want("the retry was confirmed soon", 0, 3)
		<-time.After(2 * ackHold)
		synctest.Wait()
		h.want("nothing is left to flush", 0, 3)

		jobs = h.come(9, 10, 11)
		h.finish(jobs[1:]...)
		h.want("the first is on its way", 3, 3)
		<-time.After(ackHold)
		synctest.Wait()
		h.want("the others do not wait without end", 1, 5)
		h.finish(jobs[0])
		h.want("the confirm came at last", 0, 6)

		jobs = h.come(12, 13, 14)
		h.finish(jobs[1:]...)
		h.locked(func() { h.log.open = h.log.open[1:] }) // rejected
		h.forget(jobs[0])
		h.want("the first was rejected", 0, 7)
	})
}

// Whatever order messages are done in, each is acknowledged once, and none
// before it is done.
func TestAckTrackerAcknowledgesWhatIsDone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				h := newAckHarness(t)
				var unfinished []*job
				const messages = 500
				for tag := uint64(1); tag <= messages || len(unfinished) > 0; {
					switch {
					case tag <= messages && len(unfinished) < 10 && random.IntN(2) == 0:
						unfinished = append(unfinished, h.come(tag)...)
						tag++
					case len(unfinished) > 0:
						i := random.IntN(len(unfinished))
						h.finish(unfinished[i])
						unfinished = slices.Delete(unfinished, i, i+1)
					}
					<-time.After(time.Duration(random.Int64N(int64(ackHold))))
					synctest.Wait()
				}
				<-time.After(ackHold)
				synctest.Wait()
				h.locked(func() {
					if h.handled.Total() != messages || len(h.log.open) > 0 {
						t.Errorf("%d acknowledged and %d open, want %d and none", h.handled.Total(), len(h.log.open), messages)
					}
				})
			})
		})
	}
}
