package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

const (
	// floodRate and floodParallel are what the gateway lets one address do: requests a
	// second, and requests at a time.
	floodRate, floodParallel = 300, 200
	// flooding is the address that floods.
	flooding = "192.0.2.1"
	// othersEvery is how often others ask.
	othersEvery = 20 * time.Millisecond
)

// An attack is one request of a flood from one address; it returns the answer's status.
type attack func(ctx context.Context) (status int, err error)

// floods measures an address that asks for the dearest things, and one that makes guests
// who file, each as fast as it may.
func (b *bench) floods(ctx context.Context) error {
	if err := b.flood(ctx, "flood", func(ctx context.Context) (int, error) { return b.ask(ctx, dear(), flooding) }); err != nil {
		return err
	}
	return b.flood(ctx, "guests", b.guest)
}

// flood compares what others wait for during an attack with what they wait for in turns
// without it. The names of its figures begin with kind.
func (b *bench) flood(ctx context.Context, kind string, attack attack) error {
	var p50, p99 [2][]float64
	var failed [2]int
	var served, refused atomic.Int64
	for _, flooded := range testbed.Turns(*turns, 2) {
		ended, end := context.WithCancel(ctx)
		var underWay sync.WaitGroup
		if flooded == 1 {
			underWay.Go(func() { floodUntil(ended, attack, &served, &refused) })
		}
		took, failures, err := b.others(ctx, *turn)
		end()
		underWay.Wait()
		if err != nil {
			return err
		}
		failed[flooded] += failures
		p50[flooded], p99[flooded] = append(p50[flooded], stats.Median(took)), append(p99[flooded], stats.Percentile(took, 99))
	}
	for i, name := range []string{kind + "_others_quiet", kind + "_others"} {
		b.add(name+"_p50_ms", stats.Median(p50[i]))
		b.add(name+"_p99_ms", stats.Median(p99[i]))
		b.add(name+"_failed", float64(failed[i]))
	}
	seconds := turn.Seconds() * float64(*turns)
	b.add(kind+"_served_per_s", float64(served.Load())/seconds)
	b.add(kind+"_refused_per_s", float64(refused.Load())/seconds)
	b.figures.AddRatio(kind+"_p50_ratio", p50[1], p50[0])
	b.figures.AddRatio(kind+"_p99_ratio", p99[1], p99[0])
	return nil
}

// floodUntil repeats an attack until ctx ends.
func floodUntil(ctx context.Context, attack attack, served, refused *atomic.Int64) {
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
			switch status, _ := attack(ctx); status {
			case http.StatusOK, http.StatusCreated:
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
	status, _, err = b.send(ctx, http.MethodGet, path, address, "", nil)
	return status, err
}

// guest begins as a guest, and files until a report is refused.
func (b *bench) guest(ctx context.Context) (status int, err error) {
	status, cookies, err := b.send(ctx, http.MethodPost, "/guests", flooding, "", nil)
	for filed := status; err == nil && filed == http.StatusCreated; {
		filed, _, err = b.send(ctx, http.MethodPost, "/reports", flooding,
			`{"title":"Dark lamp","description":"","category_id":2,"privacy_level":"anonymous"}`, cookies)
	}
	return status, err
}

func (b *bench) send(ctx context.Context, method, path, address, body string, cookies []*http.Cookie) (status int, set []*http.Cookie, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+b.service.Addr+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("X-Forwarded-For", address)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", uuid.NewString())
	}
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Cookies(), err
}
