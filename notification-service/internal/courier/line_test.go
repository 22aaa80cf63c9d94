package courier_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// A line leads to the broker. It can hold back what the broker says, and it
// can be cut.
type line struct {
	url    string
	broker string
	held   sync.RWMutex // locked while nothing of the broker gets through

	mu    sync.Mutex
	conns []net.Conn
}

// newLine returns a line to the broker at direct.
func newLine(t *testing.T, direct string) *line {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{broker: u.Host}
	u.Host = listener.Addr().String()
	l.url = u.String()
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for client, err := listener.Accept(); err == nil; client, err = listener.Accept() {
			carrying.Go(func() { l.carry(client) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); l.cut(); carrying.Wait() })
	return l
}

func (l *line) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.broker)
	if err != nil {
		return
	}
	l.mu.Lock()
	l.conns = append(l.conns, client, server)
	l.mu.Unlock()
	var up sync.WaitGroup
	defer up.Wait()
	defer server.Close()
	up.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() }) // ends with either side
	buf := make([]byte, 32<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		l.held.RLock()
		_, err = client.Write(buf[:n])
		l.held.RUnlock()
		if err != nil {
			return
		}
	}
}

// hold keeps back what the broker says until release, or the end of t.
func (l *line) hold(t *testing.T) (release func()) {
	l.held.Lock()
	release = sync.OnceFunc(l.held.Unlock)
	t.Cleanup(release)
	return release
}

// cut ends every connection.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}
