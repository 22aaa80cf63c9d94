package gateway_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// An error status would end a browser's EventSource for ever.
func TestStreamIsToldToComeBack(t *testing.T) {
	t.Parallel()
	g := start(t, []string{away}, []string{away})
	for _, path := range []string{"/notifications/stream", "/feed/stream"} {
		res, body := g.do(t, "GET", g.URL+path, nil)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(body, "retry: ") {
			t.Errorf("GET %s: got %d %v %q, want 200 and a retry", path, res.StatusCode, res.Header, body)
		}
	}
}

// Replicas that were all away for a moment get their streams back at once:
// none of them waits for the others to end.
func TestStreamsComeBackTogether(t *testing.T) {
	t.Parallel()
	replicas := gatewaytest.FreePorts(t, 2)
	g := start(t, []string{away}, replicas)
	for range 4 {
		if _, got := g.do(t, "GET", g.URL+"/notifications/stream", nil); !strings.HasPrefix(got, "retry:") {
			t.Fatalf("got %q, want a time to come back", got)
		}
	}
	for _, addr := range replicas {
		serveAt(t, addr, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "event: ready\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	}
	for n := range 20 {
		res, err := g.Client.Get(g.URL + "/notifications/stream")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		if line, _ := bufio.NewReader(res.Body).ReadString('\n'); line != "event: ready\n" {
			t.Errorf("stream %d: got %q, want it open", n, line)
		}
	}
}

// Every event passes at once and as it is, over plain HTTP/1.1 and over HTTP/2,
// and also through a proxy before the gateway that buffers and compresses.
func TestStreamIsNotHeldBack(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	g := start(t, []string{away}, []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-seen: // only then comes the next one
			case <-r.Context().Done():
				return
			}
		}
	})})
	for _, tt := range []struct {
		name, url, proto string
		encodings        string
	}{
		{"plain", g.URL, "HTTP/1.1", ""},
		{"TLS", g.TLSURL, "HTTP/2.0", ""},
		{"behind another nginx", front(t, g), "HTTP/1.1", "gzip"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		for _, path := range []string{"/notifications/stream", "/feed/stream"} {
			req, err := http.NewRequestWithContext(ctx, "GET", tt.url+path, nil)
			if err != nil {
				t.Fatalf("make request: %v", err)
			}
			req.Header.Set("Accept-Encoding", "gzip")
			res, err := g.Client.Do(req)
			if err != nil {
				t.Fatalf("%s: open stream: %v", tt.name, err)
			}
			defer res.Body.Close()
			if got := res.Header.Get("Content-Encoding"); res.Proto != tt.proto || got != tt.encodings {
				t.Errorf("%s: stream over %s, encoded as %q, want %s and %q", tt.name, res.Proto, got, tt.proto, tt.encodings)
			}
			body := io.Reader(res.Body)
			if tt.encodings == "gzip" {
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatalf("%s: read stream: %v", tt.name, err)
				}
			}
			readEvents(t, body, seen)
		}
	}
}

// readEvents reads three events, allowing each next one.
func readEvents(t *testing.T, body io.Reader, seen chan<- struct{}) {
	t.Helper()
	lines := bufio.NewScanner(body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) {
			t.Fatalf("event %d: got %q (error: %v)", i, lines.Text(), lines.Err())
		}
		lines.Scan() // the empty line
		seen <- struct{}{}
	}
}

// front runs an nginx as Debian has it, which also compresses what it can,
// before the gateway, and returns its URL.
func front(t *testing.T, g gateway) string {
	t.Helper()
	dir, addr := t.TempDir(), gatewaytest.FreePorts(t, 1)[0]
	config := strings.NewReplacer(
		"DIR", dir, "ADDR", addr, "GATEWAY", g.URL).Replace(`
		daemon off;
		pid DIR/nginx.pid;
		error_log stderr error;
		events {}
		http {
			client_body_temp_path DIR/body;
			proxy_temp_path DIR/proxy;
			fastcgi_temp_path DIR/fastcgi;
			uwsgi_temp_path DIR/uwsgi;
			scgi_temp_path DIR/scgi;
			access_log off;
			gzip on;
			gzip_proxied any;
			gzip_types text/event-stream;
			server {
				listen ADDR;
				location / { proxy_pass GATEWAY; }
			}
		}`)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatalf("write configuration: %v", err)
	}
	gatewaytest.Nginx(t, dir, t.Output())
	gatewaytest.Await(t, g.Client, "http://"+addr+"/gateway/livez")
	return "http://" + addr
}

// A client that reads nothing fills buffers on the way before the service
// notices. They are small: it is cut off soon, and costs little memory.
func TestStalledReaderIsNoticed(t *testing.T) {
	t.Parallel()
	const (
		most    = 512 << 10
		patient = time.Second
	)
	swallowed := make(chan int, 1)
	replica := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		event, written := []byte("data: "+strings.Repeat("x", 4000)+"\n\n"), 0
		for written < 8<<20 {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patient))
			n, err := w.Write(event)
			written += n
			if err = errors.Join(err, http.NewResponseController(w).Flush()); err != nil {
				break
			}
		}
		swallowed <- written
	}))
	replica.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10) // as the service bounds it
		return ctx
	}
	replica.Start()
	t.Cleanup(replica.Close)
	g := start(t, []string{away}, []string{replica.Listener.Addr().String()})

	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprint(conn, "GET /feed/stream HTTP/1.1\r\nHost: a\r\n\r\n")
	if got := <-swallowed; got > most {
		t.Errorf("a client that reads nothing was sent %d bytes, want at most %d", got, most)
	}
}
