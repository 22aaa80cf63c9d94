package admin

import (
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/history"
)

// PoolFigures reads what the history keeps of the worker pools. The name of a
// figure is that of its series, a space, and the queue.
func PoolFigures(c *consumer.Consumer) history.Figures {
	f := history.Figures{Counters: make(map[string]float64), Levels: make(map[string]float64)}
	known := c.Healthy() == nil // otherwise what the broker said is old
	for _, p := range c.Pools() {
		if known {
			f.Levels["depth "+p.Queue] = float64(p.Depth)
		}
		if p.Elsewhere {
			continue
		}
		handled, failed := c.Counted(p.Queue)
		f.Counters["handled_per_s "+p.Queue] = float64(handled)
		f.Counters["failed_per_s "+p.Queue] = float64(failed)
		if p.HandlerP99 > 0 {
			f.Levels["handler_p50_ms "+p.Queue] = milliseconds(p.HandlerP50)
			f.Levels["handler_p99_ms "+p.Queue] = milliseconds(p.HandlerP99)
		}
	}
	return f
}
