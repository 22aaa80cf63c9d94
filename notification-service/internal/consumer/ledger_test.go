package consumer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// An ackLog is a channel's end of the acknowledgements. It knows what was
// acknowledged, and fails the test if that was not done before. The ledger's
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

func (a *ackLog) Nack(uint64, bool, bool) error { panic("a ledger refuses nothing") }
func (a *ackLog) Reject(uint64, bool) error     { panic("a ledger refuses nothing") }

type ledgerRig struct {
	ledger
	log   *ackLog
	acked int
}

func newLedgerRig(t *testing.T) *ledgerRig {
	r := &ledgerRig{log: &ackLog{t: t, done: make(map[uint64]bool)}}
	r.ledger = ledger{acknowledger: r.log, acked: func(n int, _ error) { r.acked += n }}
	return r
}

func (r *ledgerRig) come(tags ...uint64) []*job {
	var jobs []*job
	for _, tag := range tags {
		jobs = append(jobs, &job{d: &amqp.Delivery{DeliveryTag: tag}})
	}
	r.locked(func() { r.log.open = append(r.log.open, tags...) })
	r.take(jobs)
	return jobs
}

func (r *ledgerRig) finish(jobs ...*job) {
	r.locked(func() {
		for _, j := range jobs {
			r.log.done[j.d.DeliveryTag] = true
		}
	})
	r.done(jobs...)
}

func (r *ledgerRig) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *ledgerRig) want(what string, open, frames int) {
	r.log.t.Helper()
	known := r.ledger.open()
	r.locked(func() {
		if len(r.log.open) != open || known != open || r.log.frames != frames {
			r.log.t.Errorf("%s: %d open, %d of them in the ledger, after %d frames; want %d after %d",
				what, len(r.log.open), known, r.log.frames, open, frames)
		}
	})
}

func TestLedgerSavesFrames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newLedgerRig(t)
		r.finish(r.come(1, 2, 3)...)
		r.want("all done", 0, 1)

		jobs := r.come(4, 5, 6, 7, 8)
		r.finish(jobs[0], jobs[1], jobs[3], jobs[4])
		r.want("one on its way to a retry", 3, 2)
		r.finish(jobs[2])
		r.want("the retry was confirmed soon", 0, 3)
		<-time.After(2 * ackHold)
		synctest.Wait()
		r.want("nothing is left to release", 0, 3)

		jobs = r.come(9, 10, 11)
		r.finish(jobs[1:]...)
		r.want("the first is on its way", 3, 3)
		<-time.After(ackHold)
		synctest.Wait()
		r.want("the others do not wait for ever", 1, 5)
		r.finish(jobs[0])
		r.want("the confirm came at last", 0, 6)

		jobs = r.come(12, 13, 14)
		r.finish(jobs[1:]...)
		r.locked(func() { r.log.open = r.log.open[1:] }) // rejected
		r.drop(jobs[0])
		r.want("the first was rejected", 0, 7)
	})
}

// Whatever order messages are done in, each is acknowledged once, and none
// before it is done.
func TestLedgerAcknowledgesWhatIsDone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				r := newLedgerRig(t)
				var unfinished []*job
				const messages = 500
				for tag := uint64(1); tag <= messages || len(unfinished) > 0; {
					switch {
					case tag <= messages && len(unfinished) < 10 && random.IntN(2) == 0:
						unfinished = append(unfinished, r.come(tag)...)
						tag++
					case len(unfinished) > 0:
						i := random.IntN(len(unfinished))
						r.finish(unfinished[i])
						unfinished = slices.Delete(unfinished, i, i+1)
					}
					<-time.After(time.Duration(random.Int64N(int64(ackHold))))
					synctest.Wait()
				}
				<-time.After(ackHold)
				synctest.Wait()
				r.locked(func() {
					if r.acked != messages || len(r.log.open) > 0 {
						t.Errorf("%d acknowledged and %d open, want %d and none", r.acked, len(r.log.open), messages)
					}
				})
			})
		})
	}
}
