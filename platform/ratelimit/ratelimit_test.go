package ratelimit_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cityconnect/cityconnect/platform/ratelimit"
)

func TestLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New(ratelimit.Limit{Turns: 3, Period: time.Minute})
		want := func(user string, want time.Duration) {
			t.Helper()
			if got := l.Take(user); got != want {
				t.Errorf("%s after %s: waits %v, want %v", user, time.Now().Format("04:05"), got, want)
			}
		}
		for range 3 {
			want("ann", 0)
		}
		want("ann", 20*time.Second)
		want("ben", 0)
		time.Sleep(15 * time.Second) //nolint:forbidigo // the clock is synctest's
		want("ann", 5*time.Second)
		time.Sleep(5 * time.Second) //nolint:forbidigo // the clock is synctest's
		want("ann", 0)
		want("ann", 20*time.Second)

		l.GiveBack("ann")
		want("ann", 0)
		want("ann", 20*time.Second)

		// Ann is known from before the period's end.
		time.Sleep(30 * time.Second) //nolint:forbidigo // the clock is synctest's
		want("ann", 0)
		want("ann", 10*time.Second)

		time.Sleep(time.Hour) //nolint:forbidigo // the clock is synctest's
		for range 3 {
			want("ann", 0)
		}
		want("ann", 20*time.Second)
		l.GiveBack("ben") // who has all turns
		for range 3 {
			want("ben", 0)
		}
		want("ben", 20*time.Second)
	})
}

func TestLimiterOff(t *testing.T) {
	t.Parallel()
	l := ratelimit.New(ratelimit.Limit{})
	for range 1000 {
		if wait := l.Take("ann"); wait != 0 {
			t.Fatalf("waits %v without a limit", wait)
		}
		l.GiveBack("ann")
	}
}

// However many users there are, and however quickly they come, memory stays.
func TestLimiterForgets(t *testing.T) {
	l := ratelimit.New(ratelimit.Limit{Turns: 3, Period: time.Hour})
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := memory()
	for i := range 300_000 {
		l.Take(fmt.Sprintf("user-%032d", i))
	}
	if grown := int64(memory()) - int64(before); grown > 32<<20 { //nolint:gosec // far below 2^63
		t.Errorf("300,000 users take %d MB", grown>>20)
	}
	runtime.KeepAlive(l)
}

func TestLimitUnmarshalText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ratelimit.Limit{
		"60/1h":   {Turns: 60, Period: time.Hour},
		"5/1m30s": {Turns: 5, Period: 90 * time.Second},
		"off":     {},
	} {
		var got ratelimit.Limit
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %v (error: %v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "60", "60/", "/1h", "0/1h", "-1/1h", "60/0s", "60/h", "sixty/1h", "on"} {
		var l ratelimit.Limit
		if err := l.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: got %v, want an error", text, l)
		}
	}
}
