package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

const (
	// floodRate and floodParallel are what the gateway lets one address do: requests a
	// second, and requests at a time.
	floodRate, floodParallel = 300, 200
	// othersEvery is how often others ask.
	othersEvery = 20 * time.Millisecond
)

// flood compares what others wait for while one address asks for the dearest things as
// fast as it may, with what they wait for in turns without it.
func (b *bench) flood(ctx context.Context) error {
	var p50, p99 [2][]float64
	var failed [2]int
	var served, refused atomic.Int64
	for _, flooded := range testbed.Turns(*turns, 2) {
		ended, end := context.WithCancel(ctx)
		var flooding sync.WaitGroup
		if flooded == 1 {
			flooding.Go(func() { b.floodUntil(ended, &served, &refused) })
		}
		took, failures, err := b.others(ctx, *turn)
		end()
		flooding.Wait()
		if err != nil {
			return err
		}
		failed[flooded] += failures
		p50[flooded], p99[flooded] = append(p50[flooded], stats.Median(took)), append(p99[flooded], stats.Percentile(took, 99))
	}
	for i, name := range []string{"others_quiet", "others_flood"} {
		b.add(name+"_p50_ms", stats.Median(p50[i]))
		b.add(name+"_p99_ms", stats.Median(p99[i]))
		b.add(name+"_failed", float64(failed[i]))
	}
	seconds := turn.Seconds() * float64(*turns)
	b.add("flood_served_per_s", float64(served.Load())/seconds)
	b.add("flood_refused_per_s", float64(refused.Load())/seconds)
	b.figures.AddRatio("flood_p50_ratio", p50[1], p50[0])
	b.figures.AddRatio("flood_p99_ratio", p99[1], p99[0])
	return nil
}

// floodUntil asks as one address until ctx ends.
func (b *bench) floodUntil(ctx context.Context, served, refused *atomic.Int64) {
	tick := time.NewTicker(time.Second / floodRate)
	defer tick.Stop()
	room := make(chan struct{}, floodParallel)
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		select {
		case room <- struct{}{}:
		default:
			continue
		}
		asking.Go(func() {
			defer func() { <-room }()
			switch status, _ := b.ask(ctx, dear(), "192.0.2.1"); status {
			case http.StatusOK:
				served.Add(1)
			case http.StatusTooManyRequests, http.StatusServiceUnavailable:
				refused.Add(1)
			}
		})
	}
}

// dear is a request that costs much: an area that nobody else asked for, or a search
// that finds nearly all.
func dear() string {
	switch shift := rand.Float64() / 100; rand.IntN(3) {
	case 0:
		return "/reports?order=oldest&q=a+l"
	case 1:
		return fmt.Sprintf("/map/points?zoom=13&q=j&bbox=%g,%g,%g,%g", city[0]-shift, city[1], city[2], city[3])
	default:
		return fmt.Sprintf("/map/points?zoom=13&bbox=%g,%g,%g,%g", city[0]-shift, city[1], city[2], city[3])
	}
}

// others ask for what pages ask for, each at another address, and return what they
// waited for, and how many were refused.
func (b *bench) others(ctx context.Context, span time.Duration) (took []float64, refused int, err error) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	tick := time.NewTicker(othersEvery)
	defer tick.Stop()
	for end := time.Now().Add(span); time.Now().Before(end); {
		due := <-tick.C
		n := rand.IntN(250)
		path := []string{"/categories", "/reports", "/reports?order=oldest&status=pending", area(16)}[n%4]
		asking.Go(func() {
			status, failure := b.ask(ctx, path, fmt.Sprintf("198.51.100.%d", n))
			mu.Lock()
			defer mu.Unlock()
			took = append(took, float64(time.Since(due).Microseconds())/1000)
			if failure != nil {
				err = failure
			} else if status != http.StatusOK {
				refused++
			}
		})
	}
	asking.Wait()
	return took, refused, err
}

// ask asks as an address without an account, which the gateway would write down.
func (b *bench) ask(ctx context.Context, path, address string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.service.Addr+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Forwarded-For", address)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
