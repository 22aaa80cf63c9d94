package main

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// eventSize is that of a notification.
const eventSize = 200

// settleTime is what memory and sockets need to come to rest.
const settleTime = time.Second

// weigh measures the memory per idle connection, each a user's own.
func weigh(h *hub, r result) error {
	before := h.memory()
	c, err := gather(h, *idleClients, *idleClients)
	if err != nil {
		return err
	}
	defer c.leave()
	h.collect()
	time.Sleep(settleTime)
	r["rss_per_conn_kb"] = float64(h.memory()-before) / float64(*idleClients)
	return nil
}

// fanOut publishes to everyone, the next event once all have the one before.
func fanOut(h *hub, r result) error {
	c, err := gather(h, *fanOutClients, 1)
	if err != nil {
		return err
	}
	defer c.leave()
	time.Sleep(settleTime)
	began, cpu := time.Now(), h.cpu()
	for sent := int64(1); time.Since(began) < *passLength; sent++ {
		if err := publish(h, "t0", eventSize); err != nil {
			return err
		}
		for patience := time.Now().Add(5 * time.Second); c.received.Load() < sent*int64(*fanOutClients)-c.dead.Load() && time.Now().Before(patience); {
			time.Sleep(200 * time.Microsecond)
		}
	}
	got := float64(c.received.Load())
	r["fanout_per_s"] = got / time.Since(began).Seconds()
	r["cpu_us_per_delivery"] = (h.cpu() - cpu).Seconds() * 1e6 / got
	return nil
}

// unicast publishes to one client after the other, at a fixed rate, and measures
// the latency that 99 of 100 stay below.
func unicast(h *hub, r result) error {
	c, err := gather(h, *unicastClients, *unicastClients)
	if err != nil {
		return err
	}
	time.Sleep(settleTime)
	err = paced(*unicastRate, *passLength, func() error {
		return publish(h, "t"+strconv.Itoa(rand.IntN(*unicastClients)), eventSize)
	})
	time.Sleep(settleTime)
	r["unicast_p99_ms"] = stats.Percentile(c.leave(), 99).Seconds() * 1000
	return err
}

// paced calls do at a rate, from four goroutines.
func paced(rate int, length time.Duration, do func() error) error {
	const callers = 4
	var calling sync.WaitGroup
	var failed atomic.Pointer[error]
	began := time.Now()
	for range callers {
		calling.Go(func() {
			tick := time.NewTicker(callers * time.Second / time.Duration(rate))
			defer tick.Stop()
			for time.Since(began) < length {
				<-tick.C
				if err := do(); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	calling.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
