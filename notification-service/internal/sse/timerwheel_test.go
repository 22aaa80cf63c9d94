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

// A countingConn takes everything and counts.
type countingConn struct {
	client  *client
	wakes   atomic.Int32
	ended   atomic.Value // of reason
	longest time.Duration
	last    time.Time
}

func (*countingConn) Write([]byte) error     { return nil }
func (*countingConn) Serve(transport.Source) {}
func (*countingConn) Interrupt()             {}
func (c *countingConn) Flush()               { c.Wake() }

func (c *countingConn) Wake() {
	now := time.Now()
	c.longest = max(c.longest, now.Sub(c.last))
	c.last = now
	c.wakes.Add(1)
	var b transport.Buffer
	for {
		if c.client.Take(&b, now) {
			c.ended.Store(c.client.ended)
		}
		if len(b.Bytes) == 0 {
			return
		}
	}
}

// An idle client hears something every 20 s, a tenth more at the most, and
// never lives beyond its token.
func TestTimerWheel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Heartbeat: 20 * time.Second, Lifetime: time.Hour, Writer: PerRequest},
			nil, zerolog.Nop(), prometheus.NewRegistry())
		ctx := t.Context()
		go h.wheel.run(ctx)
		const life = 10 * time.Minute
		start := time.Now()
		var conns [50]countingConn
		for i := range conns {
			conns[i].last = start
			c := h.newClient(kindNotifications, start.Add(life))
			conns[i].client, c.conn, c.scheduled = c, &conns[i], false
			h.wheel.add(c, start)
		}
		<-time.After(life)
		synctest.Wait()
		for i := range conns {
			c := &conns[i]
			if c.longest > 22*time.Second {
				t.Errorf("client %d heard nothing for %s", i, c.longest)
			}
			if n := c.wakes.Load(); n < 25 || n > 40 {
				t.Errorf("client %d heard %d times in %s, want about 30", i, n, life)
			}
			if c.ended.Load() != reasonLifetime || c.last.Sub(start) > life {
				t.Errorf("client %d: ended %v after %s, want its lifetime within %s", i, c.ended.Load(), c.last.Sub(start), life)
			}
		}
	})
}
