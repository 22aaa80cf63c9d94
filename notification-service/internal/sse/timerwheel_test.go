package sse

import (
	"bytes"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/platform/sse"
)

// A countingConn takes everything and counts.
type countingConn struct {
	client  *client
	wakes   atomic.Int32
	ended   atomic.Value // of reason
	longest time.Duration
	last    time.Time
	bytes   []byte // written last
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
		c.bytes = append(c.bytes[:0], b.Bytes...)
	}
}

// An idle client gets something every 20 s, a tenth more at the most, and its
// stream never outlives its token.
func TestTimerWheel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := Defaults()
		cfg.Heartbeat, cfg.Lifetime, cfg.Writer = 20*time.Second, time.Hour, PerRequest
		h := New(cfg, nil, zerolog.Nop(), prometheus.NewRegistry())
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
				t.Errorf("client %d got nothing for %s", i, c.longest)
			}
			if n := c.wakes.Load(); n < 25 || n > 40 {
				t.Errorf("client %d got something %d times in %s, want about 30", i, n, life)
			}
			if c.ended.Load() != reasonLifetime || c.last.Sub(start) > life {
				t.Errorf("client %d: ended %v after %s, want its lifetime within %s", i, c.ended.Load(), c.last.Sub(start), life)
			}
		}
	})
}

// A stream ends before its token does. Its retry leads past the token's end, so
// that the client comes back once and is refused for good.
func TestStreamEndsBeforeItsToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(Defaults(), nil, zerolog.Nop(), prometheus.NewRegistry())
		go h.wheel.run(t.Context())
		start := time.Now()
		check := func(expiry, ended time.Time, last []byte) {
			t.Helper()
			life := expiry.Sub(start)
			if ended.After(expiry) {
				t.Errorf("the stream of a token for %s ended %s after it", life, ended.Sub(expiry))
			}
			p := sse.NewParser(bytes.NewReader(last), "")
			_, _ = p.Next() // the last frame is not an event
			if back := ended.Add(p.Retry()).Sub(expiry); back < 0 || back > 2*time.Second {
				t.Errorf("the client of a token for %s is to come back %s after its end, want soon after", life, back)
			}
		}
		var conns [100]countingConn
		for i := range conns {
			c := h.newClient(kindNotifications, start.Add(time.Minute+time.Duration(i)*33*time.Millisecond))
			conns[i].client, c.conn, c.scheduled = c, &conns[i], false
			h.wheel.add(c, start)
		}
		for _, life := range []time.Duration{time.Millisecond, 500 * time.Millisecond, h.wheel.tick - 1} {
			w := httptest.NewRecorder()
			h.ServeNotifications(w, httptest.NewRequest("GET", "/", nil), notification.Reader{}, start.Add(life))
			check(start.Add(life), time.Now(), w.Body.Bytes())
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		for i := range conns {
			check(time.Unix(0, int64(conns[i].client.expires)), conns[i].last, conns[i].bytes)
		}
	})
}
