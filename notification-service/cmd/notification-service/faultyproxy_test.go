package main

import (
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// A faultyProxy passes connections on to a server, and cuts each of them after
// some bytes of the answer: often in the middle of an event.
type faultyProxy struct {
	addr string
	to   string
	most int64        // bytes that a connection may carry
	calm atomic.Bool  // cuts no more
	cuts atomic.Int64 // so far
}

func newFaultyProxy(t testing.TB, to string, most int64) *faultyProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // ends the loop below
	c := &faultyProxy{addr: l.Addr().String(), to: to, most: most}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(client)
		}
	}()
	return c
}

func (c *faultyProxy) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.to)
	if err != nil {
		return // the replica is down
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client) // ends with either side
		_ = server.Close()
	}()
	if _, err := io.CopyN(client, server, 1+rand.Int64N(c.most)); err == nil && !c.calm.Load() {
		c.cuts.Add(1)
		return
	}
	_, _ = io.Copy(client, server) // ends with either side
}
