package service_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/service"
)

// A handler learns that its client has left from the connection itself, also
// while the context does not say so: net/http looks for the end only once the
// body is read.
func TestClientLeft(t *testing.T) {
	t.Parallel()
	ln, err := service.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served, asked, closed := make(chan error, 1), make(chan bool, 1), make(chan struct{})
	type answer struct{ left, ended bool }
	answers := make(chan answer, 1)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- service.ClientLeft(r.Context())
		<-closed
		for !service.ClientLeft(r.Context()) { // the system passes it on in its own time
			select {
			case <-t.Context().Done():
				return
			default:
			}
		}
		answers <- answer{true, r.Context().Err() != nil}
	})
	go func() { served <- service.Serve(ctx, ln, handler, service.ServeOptions{Log: zerolog.Nop()}) }()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: city.test\r\nContent-Length: 2\r\n\r\n{}")
	if <-asked {
		t.Error("a client that waits is taken for one that has left")
	}
	// The body stays unread, and is before the end: the client's last byte is read first.
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
	close(closed)
	if got := <-answers; !got.left || got.ended {
		t.Errorf("%+v, want a client that has left while the context goes on", got)
	}
	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
