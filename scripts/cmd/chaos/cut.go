//go:build linux

package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// States of a connection in /proc/net/tcp.
const established, listening = "01", "0A"

// cutConnections ends those of the connections that a process has, and returns how
// many they were. It shuts them down: neither end says goodbye in its own protocol.
func cutConnections(pid int, sockets map[string]bool) (n int, err error) {
	taken, err := takeSockets(pid, sockets)
	for _, socket := range taken {
		shut := unix.Shutdown(socket, unix.SHUT_RDWR)
		_ = unix.Close(socket) // the process has its own
		switch {
		case shut == nil:
			n++
		case !errors.Is(shut, unix.ENOTCONN):
			err = errors.Join(err, fmt.Errorf("shut a socket down: %w", shut))
		}
	}
	return n, err
}

// takeSockets returns a second descriptor of each of the sockets that a process
// has (pidfd_getfd(2), for which it needs the rights of a debugger).
func takeSockets(pid int, sockets map[string]bool) (taken []int, err error) {
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil // a backend may have ended by itself
	}
	if err != nil {
		return nil, fmt.Errorf("open process: %w", err)
	}
	defer unix.Close(process)
	var wanted []int // all of them before the first is taken: the process may be this one
	for fd, link := range descriptors(pid) {
		if sockets[link] {
			wanted = append(wanted, fd)
		}
	}
	for _, fd := range wanted {
		socket, err := unix.PidfdGetfd(process, fd, 0)
		if errors.Is(err, unix.EBADF) || errors.Is(err, unix.ESRCH) {
			continue // it was closed by its owner
		}
		if err != nil {
			return taken, fmt.Errorf("take a socket: %w", err)
		}
		taken = append(taken, socket)
	}
	return taken, nil
}

// descriptors yields those of a process that are open, and what /proc calls each.
func descriptors(pid int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/[0-9]*", pid)) // its only error is a wrong pattern
		for _, link := range links {
			file, err := os.Readlink(link)
			fd, wrong := strconv.Atoi(filepath.Base(link))
			if err == nil && wrong == nil && !yield(fd, file) {
				return
			}
		}
	}
}

// A connection is a line of /proc/net/tcp, or a listener. Its addresses are as
// that file writes them.
type connection struct {
	local, remote string
	state         string
	socket        string // as the links in /proc/PID/fd name it
}

// port returns the port of an address, 0 if it has none.
func port(address string) int {
	_, hex, _ := strings.Cut(address, ":")
	number, _ := strconv.ParseUint(hex, 16, 16)
	return int(number)
}

// connections returns those of pid's network.
func connections(pid int) (all []connection, err error) {
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended, or there is no IPv6
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			// sl local remote state queues timer retransmits uid timeout inode …
			fields := strings.Fields(line)
			if len(fields) >= 10 {
				all = append(all, connection{fields[1], fields[2], fields[3], "socket:[" + fields[9] + "]"})
			}
		}
	}
	return all, nil
}

// cuttable returns the sockets of the connections in pid's network, but of those
// to the port spared: a RabbitMQ node registers at its port mapper once, and
// could not be stopped without.
func cuttable(pid, spared int) (map[string]bool, error) {
	all, err := connections(pid)
	if err != nil {
		return nil, err
	}
	sockets := make(map[string]bool)
	for _, c := range all {
		if c.state == established && port(c.remote) != spared {
			sockets[c.socket] = true
		}
	}
	return sockets, nil
}
