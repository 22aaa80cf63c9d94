package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

const (
	// flooding is the address that floods.
	flooding = "192.0.2.1"
	// othersEvery is how often others ask.
	othersEvery = 20 * time.Millisecond
)

// flood measures an address that makes guests who file, as fast as it may: it compares
// what others wait for with what they wait for in turns without it. What an account
// floods with, scripts/bench/fair measures.
func (b *bench) flood(ctx context.Context) error {
	var waits testbed.Waits
	var failed [2]int
	flood := testbed.Flood{Rate: testbed.Reads, Parallel: testbed.Parallel}
	for _, flooded := range testbed.Turns(*turns, 2) {
		ended, end := context.WithCancel(ctx)
		var underWay sync.WaitGroup
		if flooded == 1 {
			underWay.Go(func() { flood.Run(ended, b.guest) })
		}
		took, failures, err := b.others(ctx, *turn)
		end()
		underWay.Wait()
		if err != nil {
			return err
		}
		failed[flooded] += failures
		waits.Add(flooded, took)
	}
	b.add("guests_others_quiet_failed", float64(failed[0]))
	b.add("guests_others_failed", float64(failed[1]))
	flood.AddTo(&b.figures, "guests", *turns, *turn)
	waits.AddTo(&b.figures, "guests")
	return nil
}

// others ask for what pages ask for, each at another address, and return what they
// waited for, and how many were refused.
func (b *bench) others(ctx context.Context, span time.Duration) (took []float64, refused int, err error) {
	var mu sync.Mutex
	turn, end := context.WithTimeout(ctx, span)
	defer end()
	testbed.OpenLoop(turn, othersEvery, func(n int, due time.Time) {
		path := []string{"/categories", "/reports", "/reports?order=oldest&status=pending", testbed.Screen(16)}[n%4]
		status, failure := b.ask(ctx, path, fmt.Sprintf("198.51.100.%d", n%250))
		mu.Lock()
		defer mu.Unlock()
		took = append(took, float64(time.Since(due).Microseconds())/1000)
		if failure != nil {
			err = failure
		} else if status != http.StatusOK {
			refused++
		}
	})
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
