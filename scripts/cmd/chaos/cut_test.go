//go:build linux

package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
)

// asClient is the environment variable that makes the test binary a process with
// two connections, to the addresses in it and in asClient_SPARED. Over the first
// one it sends back what it gets.
const asClient = "CHAOS_TEST_CLIENT"

func TestMain(m *testing.M) {
	if addr := os.Getenv(asClient); addr != "" {
		var conns [2]net.Conn
		for i, addr := range []string{addr, os.Getenv(asClient + "_SPARED")} {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				os.Exit(1)
			}
			conns[i] = conn
		}
		_, _ = io.Copy(conns[0], conns[0])
		_, _ = io.Copy(io.Discard, conns[1]) // the program stays, without cgo too, as long as it can read
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A cut ends the connections of another process, but those to the port mapper.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	cut, spared := listen(t), listen(t)
	pid, conns := startClient(t, cut, spared)
	cutBut := func(spared int) (int, error) {
		t.Helper()
		sockets, err := cuttable(pid, spared)
		if err != nil {
			t.Fatal(err)
		}
		return cutConnections(pid, sockets)
	}
	n, err := cutBut(portOf(spared))
	if err != nil || n != 1 {
		t.Fatalf("cut %d connections (error %v), want 1", n, err)
	}
	if _, err := bufio.NewReader(conns[0]).ReadByte(); err == nil {
		t.Error("the connection still delivers")
	}
	again, err := cutBut(0)
	if err != nil || again != 1 {
		t.Errorf("%d connections are left (error %v), want the one to the spared port", again, err)
	}
}

// startClient starts a process with a connection to each of the listeners, and
// returns its pid and their other ends.
func startClient(t *testing.T, first, second net.Listener) (pid int, conns [2]net.Conn) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{asClient + "=" + first.Addr().String(), asClient + "_SPARED=" + second.Addr().String()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for i, listener := range []net.Listener{first, second} {
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns[i] = conn
	}
	return cmd.Process.Pid, conns
}

func portOf(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }

func listen(t *testing.T) net.Listener {
	t.Helper()
	plain := new(net.ListenConfig)
	plain.SetMultipathTCP(false) // whose sockets take no filter
	listener, err := plain.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}
