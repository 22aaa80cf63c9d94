//go:build linux

package main

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// moment is how long something that must not arrive is waited for.
const moment = 300 * time.Millisecond

// While a process is separated, nothing arrives at it over the connections to its
// peers, nobody connects to them, and other connections go on. Once healed, the data
// sent during the cut arrive.
func TestPartition(t *testing.T) {
	t.Parallel()
	peer, client := listen(t), listen(t)
	away, conns := startClient(t, peer, client)
	answers := func(within time.Duration) bool {
		_ = conns[0].SetReadDeadline(time.Now().Add(within))
		_, err := conns[0].Read(make([]byte, 1))
		return err == nil
	}
	ask := func() {
		t.Helper()
		if _, err := conns[0].Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	connects := func(within time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", peer.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	ask()
	if !answers(eventually.Patience) || !connects(eventually.Patience) {
		t.Fatal("it does not answer, or its peer takes no connection, before anything is cut")
	}

	cut, err := separate(away, []int{os.Getpid()}, []int{portOf(peer)})
	if err != nil {
		t.Fatal(err)
	}
	ask()
	if answers(moment) {
		t.Fatal("an answer arrives from the other side")
	}
	if connects(moment) {
		t.Error("there is a new connection to the other side")
	}
	if err := conns[1].SetReadDeadline(time.Now().Add(moment)); err != nil {
		t.Fatal(err)
	}
	if _, err := conns[1].Read(make([]byte, 1)); !os.IsTimeout(err) {
		t.Errorf("the connection of a client ended: %v", err)
	}

	if err := cut.heal(); err != nil {
		t.Fatal(err)
	}
	if !answers(eventually.Patience) {
		t.Error("data sent during the cut do not arrive")
	}
	if !connects(eventually.Patience) {
		t.Error("there is no new connection")
	}
}
