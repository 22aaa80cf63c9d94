//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// established is the state of a connection in /proc/net/tcp.
const established = "01"

// cutConnections ends those of the connections that a process has, and returns how
// many they were. It takes a second descriptor of each socket (pidfd_getfd(2), for
// which it needs the rights of a debugger) and shuts it down: neither end says
// goodbye in its own protocol.
func cutConnections(pid int, sockets map[string]bool) (n int, err error) {
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return 0, nil // a backend may have ended meanwhile
	}
	if err != nil {
		return 0, fmt.Errorf("open process: %w", err)
	}
	defer unix.Close(process)
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/[0-9]*", pid)) // its only error is a wrong pattern
	for _, link := range links {
		file, err := os.Readlink(link)
		if err != nil || !sockets[file] {
			continue
		}
		fd, err := strconv.Atoi(filepath.Base(link))
		if err != nil {
			return n, err
		}
		socket, err := unix.PidfdGetfd(process, fd, 0)
		if errors.Is(err, unix.EBADF) || errors.Is(err, unix.ESRCH) {
			continue // it was closed meanwhile
		}
		if err != nil {
			return n, fmt.Errorf("take a socket: %w", err)
		}
		err = unix.Shutdown(socket, unix.SHUT_RDWR)
		_ = unix.Close(socket) // the process has its own
		if err != nil && !errors.Is(err, unix.ENOTCONN) {
			return n, fmt.Errorf("shut a socket down: %w", err)
		}
		n++
	}
	return n, nil
}

// connections returns the established connections of pid's network, as the links
// in /proc/PID/fd name them, but those to the port spared: a RabbitMQ node
// registers at its port mapper once, and could not be stopped without.
func connections(pid, spared int) (map[string]bool, error) {
	sockets := make(map[string]bool)
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended, or there is no IPv6
		}
		if err != nil {
			return nil, err
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			// sl local remote state queues timer retransmits uid timeout inode …
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[3] != established {
				continue
			}
			_, port, _ := strings.Cut(fields[2], ":")
			if remote, err := strconv.ParseUint(port, 16, 16); err == nil && int(remote) != spared {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	return sockets, nil
}
