package e2e

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A deploy in the middle of the day: each service is asked to end under load,
// ends by itself, and nothing that was accepted is missing afterwards.
func TestSIGTERMUnderLoad(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	officials, anas := watch(t, c.signIn("Olga", "official")), watch(t, ana)
	report := file(t, ana, "Dark crossing")

	load := c.startLoad(ana, report, 4)
	for _, p := range []*process{c.report, c.notification} {
		before := load.accepted.Load()
		eventually.True(t, "the load is on", func() bool { return load.accepted.Load() > before+50 })
		code, took := p.terminate()
		if code != 0 {
			t.Errorf("%s ended with %d, want 0", p.path, code)
		}
		t.Logf("%s ended after %v", filepath.Base(p.path), took)
		p.start()
	}
	load.stop()
	officials.check(c.announced(created))
	anas.check(c.announced(voted))
	t.Logf("%d requests accepted", load.accepted.Load())
}

// A load files reports and votes until it is stopped. What was requested before
// is answered: a report whose request broke off could be filed after it was
// counted.
type load struct {
	accepted atomic.Int64
	cancel   context.CancelFunc
	workers  sync.WaitGroup
}

func (c *stack) startLoad(reporter *client.Client, report client.Report, workers int) *load {
	ctx, cancel := context.WithCancel(c.t.Context())
	l := &load{cancel: cancel}
	for range workers {
		voter := c.signIn("Voter", "resident")
		l.workers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := reporter.CreateReport(c.t.Context(), draft("Under load"))
				l.note(err)
				_, err = voter.Vote(c.t.Context(), report.ID, []string{"upvote", "downvote"}[i%2])
				l.note(err)
			}
		})
	}
	c.t.Cleanup(l.stop)
	return l
}

// note counts an accepted request. Others do not count as failures: while a service
// is down, the gateway has no one to ask.
func (l *load) note(err error) {
	if err == nil {
		l.accepted.Add(1)
	}
}

func (l *load) stop() {
	l.cancel()
	l.workers.Wait()
}
