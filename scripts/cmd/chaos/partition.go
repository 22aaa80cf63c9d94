//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// A partition is a network that is cut between one process and its peers: packets
// from one never arrive at the other, and neither side gets an error.
type partition struct {
	dropping []int // descriptors of the sockets at which everything is dropped
}

// separate cuts process away off from its peers, which all listen at one of the
// ports. Peers keep their connections to each other; but until the partition is
// healed, nobody gets a new one.
func separate(away int, peers []int, ports []int) (*partition, error) {
	p := new(partition)
	if err := p.separate(away, peers, ports); err != nil {
		return nil, errors.Join(err, p.heal())
	}
	return p, nil
}

func (p *partition) separate(away int, peers []int, ports []int) error {
	// The listeners first, so that no connection is made in between.
	all, err := connections(away)
	if err != nil {
		return err
	}
	doors := make(map[string]bool)
	for _, c := range all {
		if c.state == listening && slices.Contains(ports, port(c.local)) {
			doors[c.socket] = true
		}
	}
	everybody := append([]int{away}, peers...)
	if n, err := p.drop(everybody, doors); err != nil || n != len(doors) || n == 0 {
		return errors.Join(err, fmt.Errorf("%d of %d listeners at %v are separated", n, len(doors), ports))
	}

	if all, err = connections(away); err != nil {
		return err
	}
	own := make(map[string]bool)
	for _, link := range descriptors(away) {
		own[link] = true
	}
	type pair struct{ local, remote string }
	between := make(map[pair]bool) // the connections of away, from both ends
	for _, c := range all {
		if own[c.socket] && c.state == established && (slices.Contains(ports, port(c.local)) || slices.Contains(ports, port(c.remote))) {
			between[pair{c.local, c.remote}], between[pair{c.remote, c.local}] = true, true
		}
	}
	ends := make(map[string]bool)
	for _, c := range all {
		if between[pair{c.local, c.remote}] {
			ends[c.socket] = true
		}
	}
	_, err = p.drop(everybody, ends)
	return err
}

// drop drops whatever arrives at the sockets of the processes: with a filter that
// takes nothing of any packet (socket(7), SO_ATTACH_FILTER), before TCP sees it. It
// returns how many they were.
func (p *partition) drop(pids []int, sockets map[string]bool) (n int, err error) {
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	for _, pid := range pids {
		taken, err := takeSockets(pid, sockets)
		p.dropping = append(p.dropping, taken...)
		if err != nil {
			return n, err
		}
		for _, socket := range taken {
			if err := unix.SetsockoptSockFprog(socket, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing}); err != nil {
				return n, fmt.Errorf("drop what arrives at a socket: %w", err)
			}
			n++
		}
	}
	return n, nil
}

// heal has everything arrive again. What TCP still repeats arrives, too.
func (p *partition) heal() (err error) {
	for _, socket := range p.dropping {
		detach := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
		if detach != nil && !errors.Is(detach, unix.ENOENT) { // no filter was set yet
			err = errors.Join(err, fmt.Errorf("heal a socket: %w", detach))
		}
		_ = unix.Close(socket) // the process has its own, if it has not given it up
	}
	p.dropping = nil
	return err
}
