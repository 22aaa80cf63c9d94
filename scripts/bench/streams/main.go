//go:build linux

// Command streams fills one replica with idle live streams, sends an event to all
// of them, kills the replica, and waits until all are back with what they missed.
// Its last line sums up.
//
//	cd scripts/bench && GOWORK=off go run ./streams -streams 20000
//
// Each connection is an official's and carries two streams: the official's own, in
// which nothing happens, and that of all officials, in which the events come. The
// hub runs alone, with what was published in a file that outlives a kill. A process
// cannot hold more streams than files (ulimit -n): where that is too few, as many
// replicas as it takes share them, and the output says so.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

const (
	// otherFiles is what a process has open besides its streams.
	otherFiles = 200
	// settleTime is what memory and sockets need to come to rest.
	settleTime = 2 * time.Second
	// heartbeatsDone is when every stream has had a heartbeat since the last event,
	// and with it a new time to come back.
	heartbeatsDone = 25 * time.Second
	// openPatience and stormPatience are more than anything measured may take.
	openPatience, eventPatience, stormPatience = 5 * time.Minute, time.Minute, 2 * time.Minute
	// backlog is how many connections may wait to be accepted: two seconds of those
	// that come back to a replica.
	backlog = 20_000
	// passes of the fan-out, of which the median counts.
	passes = 3
	// missedEvents are published while the clients are away.
	missedEvents = 5
)

var (
	streams = flag.Int("streams", 50_000, "how many streams")
	rate    = flag.Int("reconnect-rate", 10_000, "how many clients a second come back at most, to all replicas together")
	clients crowd
)

func main() {
	flag.StringVar(&clients.addr, "crowd", "", "be the clients of the replica at this address (used by the command itself)")
	flag.IntVar(&clients.first, "first", 0, "number of the first of them")
	flag.IntVar(&clients.perAddress, "per-address", 20_000, "how many connections one address may have")
	testbed.Main(func(ctx context.Context, b *testbed.Bed) error {
		if clients.addr != "" {
			return clients.run(*streams)
		}
		return run(ctx, b, *streams)
	})
}

// run measures, and prints what it found.
func run(ctx context.Context, b *testbed.Bed, streams int) error {
	perProcess, perAddress := prepare(streams)
	replicas := (streams + perProcess - 1) / perProcess
	if replicas > 1 {
		fmt.Printf("%d replicas share the streams: one process may have %d files here\n", replicas, perProcess+otherFiles)
	}
	s, err := start(ctx, b, replicas, *rate/replicas)
	if err != nil {
		return err
	}
	rss, kernel := s.memory(), kernelMemory()

	began := time.Now()
	if err := s.gather(streams, perAddress); err != nil {
		return err
	}
	if _, err := s.await(streams, 0, openPatience); err != nil {
		return fmt.Errorf("open streams: %w", err)
	}
	took := time.Since(began)
	fmt.Printf("%d streams were opened in %.1f s, %.0f a second\n", streams, took.Seconds(), float64(streams)/took.Seconds())
	s.collectGarbage()
	time.Sleep(settleTime)
	kbPerStream := float64(s.memory()-rss) / float64(streams)
	// Both ends of every connection are on this machine.
	kernelPerStream := float64(kernelMemory()-kernel) / float64(streams) / 2

	events := 0
	var fanOuts []float64
	for range passes {
		began := time.Now()
		if err := s.publish(&events); err != nil {
			return err
		}
		last, err := s.await(streams, events, eventPatience)
		if err != nil {
			return fmt.Errorf("an event to all: %w", err)
		}
		fanOuts = append(fanOuts, last.Sub(began).Seconds())
	}
	fmt.Printf("an event reached all of them after %.2f s\n", fanOuts)

	time.Sleep(heartbeatsDone)
	began = time.Now()
	if err := s.kill(ctx); err != nil {
		return err
	}
	for range missedEvents {
		if err := s.publish(&events); err != nil {
			return err
		}
	}
	last, stormErr := s.await(streams, events, stormPatience)
	missing, err := s.missing(streams, events)
	if err != nil {
		return err
	}
	storm := last.Sub(began)
	fmt.Printf("%.1f s after the kill the last of them was back, with the %d events of that time\n", storm.Seconds(), missedEvents)
	var figures testbed.Figures
	figures.Add("streams", 0, float64(streams))
	figures.Add("kb_per_stream", 1, kbPerStream)
	figures.Add("kernel_kb_per_stream", 1, kernelPerStream)
	figures.Add("fanout_s", 2, stats.Median(fanOuts))
	figures.Add("storm_s", 1, storm.Seconds())
	figures.Add("storm_missing", 0, float64(missing))
	figures.Print()
	return stormErr
}

// prepare sets what the kernel lets us set, says what it does not, and returns how
// many streams a process may have, and how many connections an address.
func prepare(streams int) (perProcess, perAddress int) {
	want := uint64(streams + otherFiles)
	limit := unix.Rlimit{Cur: want, Max: want}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // always answered
		if limit.Cur < want {
			fmt.Printf("ulimit -n is %d and cannot be raised; one replica with all streams needs %d (also in fs.nr_open)\n", limit.Cur, want)
		}
	}
	raise("net/core/somaxconn", backlog)
	raise("net/ipv4/tcp_max_syn_backlog", backlog)
	low, high := 32768, 60999
	text, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range") // without it the usual ones
	if fields := strings.Fields(string(text)); len(fields) == 2 {
		low, _ = strconv.Atoi(fields[0]) // the kernel writes numbers
		high, _ = strconv.Atoi(fields[1])
	}
	// Few of the ports, so that hardly any is asked for whose last connection the
	// replica has not forgotten yet: that would take a second more.
	return min(streams, int(limit.Cur)-otherFiles), (high - low) / 8
}

// raise sets a setting of the kernel that is lower than it should be.
func raise(name string, want int) {
	path := filepath.Join("/proc/sys", name)
	text, err := os.ReadFile(path) //nolint:gosec // a setting of ours
	if err != nil {
		return
	}
	now, _ := strconv.Atoi(strings.TrimSpace(string(text))) // the kernel writes a number
	if now >= want {
		return
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(want)), 0o600); err != nil {
		fmt.Printf("%s is %d and should be %d, and cannot be set: a burst of connections will wait a second\n", strings.ReplaceAll(name, "/", "."), now, want)
	}
}
