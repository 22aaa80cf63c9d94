//go:build linux

package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// asClient is the environment variable that makes the test binary a process with
// two connections, to the addresses in it.
const asClient = "CHAOS_TEST_CLIENT"

func TestMain(m *testing.M) {
	if addr := os.Getenv(asClient); addr != "" {
		for _, addr := range []string{addr, os.Getenv(asClient + "_SPARED")} {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				os.Exit(1)
			}
			defer conn.Close()
		}
		select {}
	}
	os.Exit(m.Run())
}

// A cut ends the connections of another process, but those to the port mapper.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	cut, spared := listen(t), listen(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{asClient + "=" + cut.Addr().String(), asClient + "_SPARED=" + spared.Addr().String()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	conns := [2]net.Conn{}
	for i, listener := range []net.Listener{cut, spared} {
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = conn
	}
	_, port, _ := net.SplitHostPort(spared.Addr().String())
	number, _ := strconv.Atoi(port)
	cutBut := func(spared int) (int, error) {
		t.Helper()
		sockets, err := connections(cmd.Process.Pid, spared)
		if err != nil {
			t.Fatal(err)
		}
		return cutConnections(cmd.Process.Pid, sockets)
	}
	n, err := cutBut(number)
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

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}
