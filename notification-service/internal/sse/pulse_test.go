package sse

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
)

// counting is an outlet that takes everything and counts.
type counting struct {
	client  *client
	wakes   atomic.Int32
	ended   atomic.Value // of reason
	longest time.Duration
	last    time.Time
}

func (*counting) Write([]byte) error   { return nil }
func (*counting) Run(transport.Source) {}
func (*counting) Interrupt()           {}
func (o *counting) Serve()             { o.Wake() }

func (o *counting) Wake() {
	now := time.Now()
	o.longest = max(o.longest, now.Sub(o.last))
	o.last = now
	o.wakes.Add(1)
	var l transport.Load
	for {
		if o.client.Take(&l, now) {
			o.ended.Store(o.client.ended)
		}
		if len(l.Bytes) == 0 {
			return
		}
	}
}

// An idle client hears something every 20 s, a tenth more at the most, and
// never lives beyond its token.
func TestPulse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Heartbeat: 20 * time.Second, Lifetime: time.Hour, Writer: PerRequest},
			nil, zerolog.Nop(), prometheus.NewRegistry())
		ctx := t.Context()
		go h.pulse.run(ctx)
		const life = 10 * time.Minute
		start := time.Now()
		var outlets [50]counting
		for i := range outlets {
			outlets[i].last = start
			c := h.newClient(start.Add(life))
			outlets[i].client, c.out, c.scheduled = c, &outlets[i], false
			h.pulse.add(c, start)
		}
		<-time.After(life)
		synctest.Wait()
		for i := range outlets {
			o := &outlets[i]
			if o.longest > 22*time.Second {
				t.Errorf("client %d heard nothing for %s", i, o.longest)
			}
			if n := o.wakes.Load(); n < 25 || n > 40 {
				t.Errorf("client %d heard %d times in %s, want about 30", i, n, life)
			}
			if o.ended.Load() != reasonLifetime || o.last.Sub(start) > life {
				t.Errorf("client %d: ended %v after %s, want its lifetime within %s", i, o.ended.Load(), o.last.Sub(start), life)
			}
		}
	})
}
