package forwarder_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// A proxy leads to the broker. It can hold back what the broker says, and it
// can be cut.
type proxy struct {
	url    string
	broker string
	held   sync.RWMutex // locked while nothing of the broker gets through

	mu    sync.Mutex
	conns []net.Conn
}

// newProxy returns a proxy to the broker at direct.
func newProxy(t *testing.T, direct string) *proxy {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{broker: u.Host}
	u.Host = listener.Addr().String()
	p.url = u.String()
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for client, err := listener.Accept(); err == nil; client, err = listener.Accept() {
			carrying.Go(func() { p.carry(client) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); p.cut(); carrying.Wait() })
	return p
}

func (p *proxy) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.broker)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
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
		p.held.RLock()
		_, err = client.Write(buf[:n])
		p.held.RUnlock()
		if err != nil {
			return
		}
	}
}

// hold keeps back what the broker says until release, or the end of t.
func (p *proxy) hold(t *testing.T) (release func()) {
	p.held.Lock()
	release = sync.OnceFunc(p.held.Unlock)
	t.Cleanup(release)
	return release
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}
