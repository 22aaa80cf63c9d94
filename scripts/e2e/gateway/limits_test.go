package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// behindProxy are settings with which X-Forwarded-For says who asks.
var behindProxy = []string{"GATEWAY_TRUSTED_PROXY", "127.0.0.0/8"}

// An address that asks too often is refused for a while, and no other is.
func TestRequestsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method string
		most   int // at once
		rate   int // a second
	}{
		{"GET", 600, 300},
		{"POST", 100, 20},
		{"DELETE", 100, 20},
	} {
		t.Run(tt.method, func(t *testing.T) {
			t.Parallel()
			g := start(t, []string{serve(t, answer("reports"))}, []string{away}, behindProxy...)
			const extra = 300
			begun := time.Now()
			passed := g.repeat(t, tt.method, tt.most+extra, "192.0.2.1")
			if most := tt.most + 1 + tt.rate*int(time.Since(begun).Seconds()+1); passed < tt.most || passed > most {
				t.Errorf("%d requests of one address were served, want %d to %d", passed, tt.most, most)
			}
			res, body := g.do(t, tt.method, g.URL+"/reports", nil, "X-Forwarded-For", "192.0.2.1")
			if res.StatusCode == 429 && (res.Header.Get("Retry-After") == "" || !strings.Contains(body, "#too-many-requests")) {
				t.Errorf("refused with %v %s, want Retry-After and a problem", res.Header, body)
			}
			if passed := g.repeat(t, tt.method, 50, "192.0.2.2"); passed != 50 {
				t.Errorf("%d of 50 requests of another address were served", passed)
			}
		})
	}
}

// repeat makes requests in the name of an address, several at a time, and
// returns how many were served.
func (g gateway) repeat(t *testing.T, method string, n int, address string) (served int) {
	t.Helper()
	var passed atomic.Int32
	var workers sync.WaitGroup
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	for range 8 {
		workers.Go(func() {
			for range todo {
				if res, _ := g.do(t, method, g.URL+"/reports", nil, "X-Forwarded-For", address); res.StatusCode == 200 {
					passed.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return int(passed.Load())
}

// A whole network counts as one client for IPv6, however its addresses are written.
func TestNetworksOfIPv6AreOneAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		first, second string
		same          bool
	}{
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2:9:9:9:9", true},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::7", true},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:3:3:4:5:6", false},
		{"2001:db8:1::5", "2001:db8:1::6", true},
		{"2001:db8:1::5:6:7", "2001:db8:1::8", true},
		{"2001:db8:1::5", "2001:db8:2::5", false},
		{"2001:db8::5", "2001:db8::6", true},
		{"2001:db8::5", "2001:db8:0:0:7::8", true}, // one network, and two ways to shorten it
		{"2001:db8:0:1::", "2001:db8:0:1:2::", true},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
		{"192.0.2.1", "192.0.2.2", false},
	} {
		g := start(t, []string{serve(t, answer("reports"))}, []string{away}, append(behindProxy, "GATEWAY_WRITES", "1")...)
		g.repeat(t, "POST", 150, tt.first)
		const more = 20 // one may be served again by now, or two
		if passed := g.repeat(t, "POST", more, tt.second); (passed < more) != tt.same {
			t.Errorf("%s after %s: %d of %d were served", tt.second, tt.first, passed, more)
		}
	}
}

func TestLimitsOff(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, answer("reports"))}, []string{away}, "GATEWAY_LIMITS", "off", "GATEWAY_WRITES", "1")
	if passed := g.repeat(t, "POST", 300, "192.0.2.1"); passed != 300 {
		t.Errorf("%d of 300 requests were served", passed)
	}
}

// An address has so many streams, apart from those of the feed. One more is
// told to come back later, as a stream must be.
func TestStreamsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	replica := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "event: ready\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	g := start(t, []string{away}, []string{replica}, append(behindProxy, "GATEWAY_STREAMS", "3")...)
	for _, path := range []string{"/feed/stream", "/notifications/stream"} {
		var last context.CancelFunc
		for range 3 {
			line, leave := g.listen(t, path, "192.0.2.1")
			if line != "event: ready\n" {
				t.Fatalf("%s: got %q, want it open", path, line)
			}
			last = leave
		}
		if line, _ := g.listen(t, path, "192.0.2.1"); len(line) != len("retry: 20000\n") || !strings.HasPrefix(line, "retry: ") {
			t.Errorf("%s, a fourth one: got %q, want a retry of 15 to 30 s", path, line)
		}
		if line, _ := g.listen(t, path, "192.0.2.2"); line != "event: ready\n" {
			t.Errorf("%s, of another address: got %q, want it open", path, line)
		}
		last()
		eventually.True(t, path+": one that was closed makes room", func() bool {
			line, _ := g.listen(t, path, "192.0.2.1")
			return line == "event: ready\n"
		})
	}
}

// listen opens a stream and returns its first line. It stays open until leave
// is called or the test ends.
func (g gateway) listen(t *testing.T, path, address string) (line string, leave context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", g.URL+path, nil)
	if err != nil {
		t.Fatalf("make request: %v", err)
	}
	req.Header.Set("X-Forwarded-For", address)
	res, err := g.Client.Do(req)
	if err != nil {
		t.Fatalf("open stream: %v", err)
	}
	t.Cleanup(func() { cancel(); res.Body.Close() })
	line, _ = bufio.NewReader(res.Body).ReadString('\n')
	return line, cancel
}

// Bodies that trickle in hold a bounded number of places, and none of others.
func TestSlowBodiesAreLimited(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, answer("reports"))}, []string{away}, append(behindProxy, "GATEWAY_WRITES", "10000")...)
	answers := make(chan string, 201)
	for range 201 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.URL, "http://"))
		if err != nil {
			t.Fatalf("dial: %v", err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, "POST /reports HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nContent-Length: 10\r\n\r\n{")
		go func() {
			line, _ := bufio.NewReader(conn).ReadString('\n') // "" of one that timed out
			answers <- line
		}()
	}
	if line := <-answers; !strings.HasPrefix(line, "HTTP/1.1 429 ") {
		t.Errorf("of 201 one was answered %q, want 429", line)
	}
	if res, _ := g.do(t, "POST", g.URL+"/reports", strings.NewReader("{}"), "X-Forwarded-For", "192.0.2.2"); res.StatusCode != 200 {
		t.Errorf("another address: got %d, want 200", res.StatusCode)
	}
}

// Of what costs the database much, an address has a few requests at a time, however it
// writes them; of everything else it has as many as before.
func TestCostlyRequestsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	g := start(t, []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/reports" || r.URL.RawQuery != "" {
			<-end
		}
		fmt.Fprint(w, "{}")
	})}, []string{away}, behindProxy...)
	costly := []string{
		"/map/points?zoom=12&bbox=1,2,3,4", "/reports?q=lamp", "/reports?order=oldest&q=l", "/reports/mine?bbox=1,2,3,4",
		"/reports/queue?status=pending&q=l", "/reports/queue/counts", "/reports/export", "/reports/export?q=lamp", "/reports/numbers?interval=day",
		"/reports/mine/data", "/open-data/reports.csv", "/open-data/reports.atom?q=l", "/open311/v2/requests.json", "/open311/v2/servicerequestupdates.xml?x=1",
	}
	const most = 10
	answers := make(chan *http.Response, 2*most)
	for i := range 2 * most {
		go func() {
			res, _ := g.do(t, "GET", g.URL+costly[i%len(costly)], nil, "X-Forwarded-For", "192.0.2.1")
			answers <- res
		}()
	}
	for range most {
		if res := <-answers; res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
			t.Errorf("got %d, want 429 with Retry-After", res.StatusCode)
		}
	}
	if res, _ := g.do(t, "GET", g.URL+"/reports", nil, "X-Forwarded-For", "192.0.2.1"); res.StatusCode != 200 {
		t.Errorf("a list without a search: got %d, want 200", res.StatusCode)
	}
	close(end)
	for range most {
		if res := <-answers; res.StatusCode != 200 {
			t.Errorf("one of %d at a time: got %d, want 200", most, res.StatusCode)
		}
	}
	if res, _ := g.do(t, "GET", g.URL+costly[0], nil, "X-Forwarded-For", "192.0.2.1"); res.StatusCode != 200 {
		t.Errorf("afterwards: got %d, want 200", res.StatusCode)
	}
}
