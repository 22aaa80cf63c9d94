package rabbit

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// A read takes what the broker sent in time, although this process gets to it after its
// deadline; a broker that sent nothing is gone, and so is one at the end of the limit.
func TestStarvedReadTakesWhatCame(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ours, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	broker, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	c := newDeadlineConn(ours, Config{Heartbeat: time.Second})
	defer c.Close()
	c.silence = -time.Second // each deadline is over before the read begins

	if _, err := broker.Write([]byte("heartbeat")); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 9)
	if _, err := io.ReadFull(c, p); err != nil || string(p) != "heartbeat" {
		t.Errorf("read %q, %v; want what the broker sent", p, err)
	}
	if _, err := c.Read(p); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silent broker: %v, want the deadline", err)
	}
	if _, err := broker.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(p); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("beyond the limit: %d bytes, %v; want the deadline", n, err)
	}
}
