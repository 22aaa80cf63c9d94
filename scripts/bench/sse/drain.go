package main

import (
	"fmt"
	"os"
	"time"
)

// drainPatience is more than any drain may take.
const drainPatience = time.Minute

// A drainResult is how evenly a server that ends sends its clients away, so
// that they do not all knock at the next one at once.
type drainResult struct {
	clients int
	took    time.Duration
	busiest float64 // second, as a multiple of the mean second
}

// String says it in words.
func (r drainResult) String() string {
	return fmt.Sprintf("%d clients were sent away within %.1f s; the busiest second saw %.2f times the mean", r.clients, r.took.Seconds(), r.busiest)
}

// drained interrupts a server that n clients listen to.
func drained(s server, n int) (drainResult, error) {
	proc, err := s.start()
	if err != nil {
		return drainResult{}, err
	}
	defer proc.stop()
	c, err := gather(proc, n, n)
	if err != nil {
		return drainResult{}, err
	}
	time.Sleep(settleTime)
	began := time.Now()
	if err := proc.cmd.Process.Signal(os.Interrupt); err != nil {
		return drainResult{}, err
	}
	for c.dead.Load() < int64(n) && time.Since(began) < drainPatience {
		time.Sleep(settleTime / 10)
	}
	gone := c.dead.Load()
	c.leave()
	if gone < int64(n) {
		return drainResult{}, fmt.Errorf("only %d of %d clients were sent away", gone, n)
	}
	return spread(began, c.ends), nil
}

// spread tells how even the ends are.
func spread(began time.Time, ends []time.Time) drainResult {
	r := drainResult{clients: len(ends)}
	perSecond := make(map[int]int)
	most := 0
	for _, end := range ends {
		after := end.Sub(began)
		r.took = max(r.took, after)
		perSecond[int(after.Seconds())]++
		most = max(most, perSecond[int(after.Seconds())])
	}
	r.busiest = float64(most) * r.took.Seconds() / float64(len(ends))
	return r
}
