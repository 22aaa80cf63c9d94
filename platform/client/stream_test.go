package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// A server that ends its first stream, is away for two requests, and comes
// back: the client goes on where it was, by header, and misses nothing.
func TestStreamResumes(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	cursors := make(chan string, 4)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		if n == 2 || n == 3 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		cursors <- r.URL.Query().Get("last_event_id") + "|" + r.Header.Get("Last-Event-ID")
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		fmt.Fprint(w, "retry: 1\n")
		if n == 1 {
			fmt.Fprint(w, "event: ready\nid: v1.e.4\ndata: {}\n\nevent: hb\ndata: 1\n\nevent: notification\nid: v1.e.5\ndata: {}\n\n")
			return
		}
		fmt.Fprint(w, "event: ready\nid: v1.e.5\ndata: {}\n\nevent: notification\nid: v1.e.6\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()

	var ledger ssetest.Ledger
	seen := make(chan string, 10)
	s := &client.Stream{
		Client: client.New(srv.URL), Path: "/notifications/stream", LastID: "v1.e.4", MaxWait: time.Millisecond,
		Handle: func(e sse.Event) { ledger.Observe(e); seen <- e.Type + " " + e.ID },
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- s.Run(ctx) }()
	for _, want := range []string{"ready v1.e.4", "notification v1.e.5", "ready v1.e.5", "notification v1.e.6"} {
		if got := <-seen; got != want {
			t.Errorf("got event %q, want %q", got, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	for _, want := range []string{"v1.e.4|", "|v1.e.5"} {
		if got := <-cursors; got != want {
			t.Errorf("got cursor %q, want %q", got, want)
		}
	}
	if got, want := ledger.Count(), (ssetest.Count{Received: 2}); got != want || s.Connects() != 2 {
		t.Errorf("got %+v after %d connections, want %+v after 2", got, s.Connects(), want)
	}
}

func TestStreamEndsForGood(t *testing.T) {
	t.Parallel()
	for _, status := range []int{204, 400, 401, 403, 404} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		s := &client.Stream{Client: client.New(srv.URL), Path: "/", Handle: func(sse.Event) {}}
		if err := s.Run(t.Context()); !errors.Is(err, client.ErrEnded) {
			t.Errorf("after %d: got %v, want the end", status, err)
		}
		srv.Close()
	}
}

func TestErrorNamesTheProblem(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gateway" {
			http.Error(w, "<html>", http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"type":"https://x/problems.md#invalid-input","title":"No","status":400,"errors":[{"pointer":"/title","detail":"missing"}]}`)
	}))
	defer srv.Close()
	c := client.New(srv.URL + "/")
	err := c.Do(t.Context(), "GET", "/x", nil, nil)
	problem, ok := errors.AsType[*client.Error](err)
	if !ok || problem.Name() != "invalid-input" || client.StatusOf(err) != 400 {
		t.Errorf("got %v, want the problem invalid-input", err)
	}
	if err := c.Do(t.Context(), "GET", "/gateway", nil, nil); client.StatusOf(err) != 502 {
		t.Errorf("got %v, want a 502", err)
	}
}

// Events that a broken proxy loses, swaps or repeats are handed on once and in order; what stays
// missing is a reset.
func TestStreamRepairs(t *testing.T) {
	t.Parallel()
	const ready, end = "retry: 1\nevent: ready\nid: v1.e.4.f.1\ndata: {}\n\n", "v1.e.7.f.1"
	for _, tt := range []struct {
		name        string
		connections [][]string // the ids of their notifications; the last one stays
		want        []string
	}{
		{"repeated", [][]string{{"v1.e.5.f.1", "v1.e.5.f.1", "v1.e.6.f.1", "v1.e.5.f.1", end}}, []string{"v1.e.5.f.1", "v1.e.6.f.1", end}},
		{"lost", [][]string{{"v1.e.5.f.1", end}, {"v1.e.6.f.1", end}}, []string{"v1.e.5.f.1", "v1.e.6.f.1", end}},
		{"swapped", [][]string{{"v1.e.6.f.1"}, {"v1.e.5.f.1", "v1.e.6.f.1", end}}, []string{"v1.e.5.f.1", "v1.e.6.f.1", end}},
		{"lost for good", [][]string{{"v1.e.6.f.1"}, {"v1.e.6.f.1", end}}, []string{"reset v1.e.6.f.1", end}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := min(int(requests.Add(1)), len(tt.connections))
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, ready)
				for _, id := range tt.connections[n-1] {
					fmt.Fprintf(w, "event: notification\nid: %s\ndata: {}\n\n", id)
				}
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
			defer srv.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var got []string
			s := &client.Stream{Client: client.New(srv.URL), Path: "/", Handle: func(e client.Event) {
				switch e.Type {
				case sse.Reset:
					got = append(got, "reset "+e.ID)
				case sse.Notification:
					got = append(got, e.ID)
				}
				if e.ID == end {
					cancel()
				}
			}}
			if err := s.Run(ctx); err != nil || !slices.Equal(got, tt.want) || s.LastID != end {
				t.Errorf("got %v up to %s, error %v; want %v", got, s.LastID, err, tt.want)
			}
			if int(requests.Load()) != len(tt.connections) {
				t.Errorf("%d connections, want %d", requests.Load(), len(tt.connections))
			}
		})
	}
}

// A server that is overloaded is left alone for as long as it says.
func TestStreamHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			var asked []time.Time
			c := client.New("http://city.test")
			c.Use(answers(func(*http.Request) *http.Response {
				asked = append(asked, time.Now())
				return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"20"}}, Body: http.NoBody}
			}))
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
			defer cancel()
			if err := (&client.Stream{Client: c, Path: "/", Handle: func(client.Event) {}}).Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
			if len(asked) < 2 || asked[1].Sub(asked[0]) < 20*time.Second || asked[1].Sub(asked[0]) > 30*time.Second {
				t.Errorf("after %d it asked at %v, want a pause of 20 to 30 s", status, asked)
			}
		})
	}
}

// answers is a transport without a network.
type answers func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }
