package service_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/service"
)

// An upload may take as long as it goes on, and no longer than ten minutes. One
// that stops is ended after the time that other bodies have as a whole.
func TestUploadsTakeTheirTime(t *testing.T) {
	t.Parallel()
	const timeout, pause = 10 * time.Second, 9 * time.Second
	for _, tt := range []struct {
		name, path string
		bytes      int // that are sent, one after each pause
		length     int // that was promised
		want       int
		took       time.Duration
	}{
		{"slow", "/photos/1", 20, 20, http.StatusNoContent, 20 * pause},
		{"stops", "/photos/1", 3, 20, http.StatusRequestTimeout, 3*pause + timeout},
		{"too slow", "/photos/1", 1000, 1000, http.StatusRequestTimeout, 10 * time.Minute},
		{"no upload", "/reports", 20, 20, http.StatusRequestTimeout, timeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				errs := service.Errors{Log: zerolog.Nop()}
				uploads := []service.Upload{{Method: http.MethodPut, Path: regexp.MustCompile("^/photos/"), MaxBytes: 1000}}
				handler := service.LimitBody(100, timeout, uploads)(errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
					_, err := io.ReadAll(r.Body)
					if errors.Is(err, os.ErrDeadlineExceeded) {
						return service.RequestTimeout.New("")
					}
					w.WriteHeader(http.StatusNoContent)
					return err
				}))
				client, listener := pipe()
				server := &http.Server{Handler: handler}
				serving := make(chan error, 1)
				go func() { serving <- server.Serve(listener) }()

				began, answered := time.Now(), make(chan struct{})
				go func() {
					_, _ = io.WriteString(client, "PUT "+tt.path+" HTTP/1.1\r\nHost: city.test\r\nContent-Length: "+strconv.Itoa(tt.length)+"\r\n\r\n")
					for range tt.bytes {
						select {
						case <-answered:
							return
						case <-time.After(pause):
							_, _ = client.Write([]byte("x")) // nobody reads what comes too late
						}
					}
				}()
				res, err := http.ReadResponse(bufio.NewReader(client), nil)
				close(answered)
				if err != nil {
					t.Fatalf("no answer: %v", err)
				}
				// An answer to what was not read waits a little for it.
				if took := time.Since(began); res.StatusCode != tt.want || took < tt.took || took > tt.took+2*time.Second {
					t.Errorf("status %d after %v, want %d after %v", res.StatusCode, took, tt.want, tt.took)
				}
				_ = res.Body.Close()
				_ = client.Close()
				_ = server.Close()
				<-serving
			})
		})
	}
}

// pipe returns a connection in memory, and a listener that accepts its other end.
func pipe() (client net.Conn, l *oneConnection) {
	client, server := net.Pipe()
	l = &oneConnection{accepted: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.accepted <- server
	return client, l
}

type oneConnection struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (l *oneConnection) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConnection) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConnection) Addr() net.Addr { return &net.TCPAddr{} }

// A client that sends far more than it may reads why, also if it sends all before it
// reads.
func TestTooLargeBodyIsAnswered(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(service.LimitBody(100, time.Second, nil)(http.NotFoundHandler()))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const size = 12 << 20
	if _, err := io.WriteString(conn, "PUT / HTTP/1.1\r\nHost: city.test\r\nContent-Length: "+strconv.Itoa(size)+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(make([]byte, size)); err != nil {
		t.Fatalf("write the body: %v", err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, error %v, want 413", res.StatusCode, err)
	}
}
