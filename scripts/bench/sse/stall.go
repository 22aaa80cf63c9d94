package main

import (
	"fmt"
	"net"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// How a server treats a client that does not read, and how the others fare in the
// same time.
const (
	stallClients = 1000
	stallRate    = 50
	stallSize    = 2000
	stallCalm    = 3 * time.Second
	stallLength  = 12 * time.Second
)

// A stallResult is when the client was gone, 0 for never, and the 99th
// percentile of the others before and during.
type stallResult struct {
	after        time.Duration
	calm, during time.Duration
}

func (r stallResult) gone() string {
	if r.after == 0 {
		return "never"
	}
	return r.after.Round(100 * time.Millisecond).String()
}

func (r stallResult) others() string {
	if r.during == 0 {
		return "nothing came"
	}
	return fmt.Sprintf("%s, %s", r.calm.Round(10*time.Microsecond), r.during.Round(10*time.Microsecond))
}

// stalled publishes to a crowd without and then with a client that reads
// nothing.
func stalled(s server) (stallResult, error) {
	proc, err := s.start()
	if err != nil {
		return stallResult{}, err
	}
	defer proc.stop()
	var r stallResult
	if r.calm, err = feed(proc, stallCalm, func() {}); err != nil {
		return r, err
	}
	conn, err := net.Dial("tcp", proc.addr)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		return r, err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", fmt.Sprintf(proc.sub, "t0"), proc.addr); err != nil {
		return r, err
	}
	gone := make(chan time.Duration, 1)
	r.during, err = feed(proc, stallLength, func() { // the clock runs from the first event
		go func() { gone <- proc.untilClosed(conn, stallLength) }()
	})
	r.after = <-gone
	if r.during == 0 {
		err = nil // it stopped for everyone: that is the result
	}
	return r, err
}

// feed publishes to a crowd for a while and returns its 99th percentile. It
// calls begin when all are there.
func feed(proc *process, length time.Duration, begin func()) (time.Duration, error) {
	c, err := gather(proc, stallClients, 1)
	if err != nil {
		return 0, err
	}
	time.Sleep(settleTime)
	begin()
	err = paced(stallRate, length, func() error { return publish(proc, "t0", stallSize) })
	time.Sleep(settleTime)
	return stats.Percentile(c.leave(), 99), err
}
