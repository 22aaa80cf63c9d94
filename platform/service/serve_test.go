package service_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/service"
)

// On the way out the service stops being ready, ends its streams, refuses new
// connections, and still answers what it had begun.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	health := service.NewHealth(zerolog.Nop(), service.Details{})
	entered, streamEnd, release := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-release
		if r.Context().Err() == nil {
			_, _ = io.WriteString(w, "done")
		}
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-streamEnd
		_, _ = io.WriteString(w, "bye")
	})
	ln, err := service.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- service.Serve(ctx, ln, mux, service.ServeOptions{
			Log: zerolog.Nop(), Health: health,
			Drain: func(context.Context) {
				if got := health.Report(t.Context()).Status; got != service.Draining {
					t.Errorf("health while draining: %s", got)
				}
				close(streamEnd)
			},
		})
	}()
	answers := make(chan string, 2)
	for _, path := range []string{"/slow", "/stream"} {
		go func() { answers <- get(t, "http://"+ln.Addr().String()+path) }()
		<-entered
	}

	stop()
	if got := <-answers; got != "bye" {
		t.Errorf("the stream ended with %q", got)
	}
	<-streamEnd
	waitRefused(t, ln.Addr().String())
	close(release)
	if got := <-answers; got != "done" {
		t.Errorf("the request in hand ended with %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A gateway that has kept a connection gets the answer to a request on it while the
// service ends, with the header that it was the last one.
func TestKeptConnectionIsGoodForOneMoreRequest(t *testing.T) {
	t.Parallel()
	ln, err := service.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served, draining, asked := make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		served <- service.Serve(ctx, ln, http.NewServeMux(), service.ServeOptions{Log: zerolog.Nop(), Drain: func(context.Context) {
			close(draining)
			<-asked
		}})
	}()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	ask := func() *http.Response {
		t.Helper()
		_, _ = io.WriteString(conn, "POST /nowhere HTTP/1.1\r\nHost: city.test\r\nContent-Length: 0\r\n\r\n")
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("ask: %v", err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res
	}
	if ask().Close {
		t.Error("the connection is not kept")
	}
	stop()
	<-draining
	if !ask().Close {
		t.Error("the gateway is not told that the connection ends")
	}
	close(asked)
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func get(t *testing.T, url string) string {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// waitRefused returns once addr refuses connections.
func waitRefused(t *testing.T, addr string) {
	for t.Context().Err() == nil {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}

func TestServeTellsWhyItCannot(t *testing.T) {
	t.Parallel()
	ln, err := service.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.Listen(t.Context(), ln.Addr().String()); err == nil {
		t.Error("Listen on an address in use: no error")
	}
	_ = ln.Close()
	if err := service.Serve(t.Context(), ln, http.NewServeMux(), service.ServeOptions{Log: zerolog.Nop()}); err == nil {
		t.Error("Serve on a closed listener: no error")
	}
}

// The state is what the checks say, which run once a second however many ask.
func TestHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testHealth)
}

func testHealth(t *testing.T) {
	var probes atomic.Int64
	var db, broker atomic.Bool
	probe := func(up *atomic.Bool) func(context.Context) error {
		return func(context.Context) error {
			probes.Add(1)
			if !up.Load() {
				return errors.New("dial tcp db.internal: connection refused")
			}
			return nil
		}
	}
	h := service.NewHealth(zerolog.Nop(), service.Details{},
		service.Check{Name: "database", Probe: probe(&db)},
		service.Check{Name: "broker", Probe: probe(&broker), Optional: true})
	for _, tt := range []struct {
		db, broker, drain bool
		code              int
		want              service.Status
	}{
		{true, true, false, 200, service.Up},
		{true, false, false, 200, service.Degraded},
		{false, true, false, 503, service.Down},
		{false, false, false, 503, service.Down},
		{true, true, true, 503, service.Draining},
	} {
		time.Sleep(time.Second) //nolint:forbidigo // the clock is synctest's
		db.Store(tt.db)
		broker.Store(tt.broker)
		if tt.drain {
			h.Drain()
		}
		w := httptest.NewRecorder()
		h.Ready(w, httptest.NewRequest("GET", "/readyz", nil))
		var report service.HealthReport
		if err := json.Unmarshal(w.Body.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		if w.Code != tt.code || report.Status != tt.want || len(report.Checks) != 2 {
			t.Errorf("%+v: got %d %+v", tt, w.Code, report)
		}
		before := probes.Load()
		if h.Ready(httptest.NewRecorder(), httptest.NewRequest("GET", "/readyz", nil)); probes.Load() != before {
			t.Errorf("%+v: another request in the same moment probes again", tt)
		}
		live := httptest.NewRecorder()
		if h.Live(live, httptest.NewRequest("GET", "/livez", nil)); live.Code != 200 {
			t.Errorf("%+v: /livez answers %d", tt, live.Code)
		}
	}
}
